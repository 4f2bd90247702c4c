// Rules for every task.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "catch.h"
#include "small_rows.h"

using namespace thimble;
using rows::Tokens;

namespace {

// A config of that task with few inputs, and, where the task knows min_length, one with inputs of different
// lengths.
std::vector<TaskConfig> configs(std::string_view name) {
  TaskConfig config = rows::usual(name)->config();
  std::vector<TaskConfig> out = {config};
  const auto& keys = find_task(name).keys;
  const auto reads = [&](std::string_view key) { return std::ranges::find(keys, key) != keys.end(); };
  if (reads("min_length")) {
    config.symbols = 3;
    config.length = 6;
    config.min_length = 2;
    config.offset = 4;
    config.depth = 2;
    out.push_back(config);
  }
  return out;
}

constexpr std::int64_t kSamples = 4000;

// Calls f with examples of the task, drawn or all that there are.
template <class F>
void for_examples(const TaskConfig& config, F f) {
  const Task& task = checked_task(config);
  Example example;
  const std::int64_t count =
      task.at == nullptr ? kSamples : static_cast<std::int64_t>(task.distinct_inputs(config));
  for (std::int64_t index = 0; index < count; ++index) {
    if (task.at == nullptr) {
      SampleRng rng(Random(11, Stream::data), static_cast<std::uint64_t>(index), 0);
      task.sample(config, rng, example);
    } else {
      task.at(config, index, example);
    }
    f(example);
  }
}

template <class F>
void for_every_task(F f) {
  for (const std::string_view name : task_names())
    if (find_task(name).open == nullptr)
      for (const TaskConfig& config : configs(name)) {
        INFO(name << ", symbols " << config.symbols << ", length " << config.length);
        f(config, checked_task(config));
      }
}

}  // namespace

TEST_CASE("every task: examples fit the size, the vocabulary and the layouts", "[data]") {
  for_every_task([](const TaskConfig& config, const Task& task) {
    const ExampleSize size = task.size(config);
    const auto vocabulary = std::ssize(task.tokens(config));
    CHECK_NOTHROW(model_sizes(*generated_source(config), usual_layout(size)));
    std::int64_t longest_input = 0, longest_target = 0, ignored = 0;
    for_examples(config, [&](const Example& e) {
      longest_input = std::max(longest_input, std::ssize(e.input));
      longest_target = std::max(longest_target, std::ssize(e.target));
      REQUIRE(std::ssize(e.input) >= 1);
      const bool alike = size.input == size.target ? e.target.size() == e.input.size()
                                                   : size.target != 1 || e.target.size() == 1;
      REQUIRE(alike);
      ignored += std::ranges::count(e.target, kIgnore);
      for (const std::int32_t token : e.input) REQUIRE((token >= 0 && token < vocabulary));
      for (const std::int32_t token : e.target)
        REQUIRE((token == kIgnore || (token >= 0 && token < vocabulary)));
    });
    CHECK(longest_input == size.input);
    CHECK(longest_target == size.target);
    CHECK(task.sparse == (ignored > 0));
  });
}

TEST_CASE("every task: special tokens are in the vocabulary", "[data]") {
  for_every_task([](const TaskConfig& config, const Task& task) {
    const auto numbers = special_tokens(config);
    REQUIRE(numbers.size() == task.special.size());
    for (const std::int32_t number : numbers) {
      const std::string name = task.tokens(config)[static_cast<std::size_t>(number)];
      CHECK(std::ranges::find(task.special, name) != task.special.end());
    }
  });
  TaskConfig masked = rows::usual("masked")->config();
  CHECK(special_tokens(masked) == std::vector<std::int32_t>{static_cast<std::int32_t>(masked.symbols)});
}

TEST_CASE("every task: an example is a pure function of its rng, whatever was there before", "[data]") {
  for_every_task([](const TaskConfig& config, const Task& task) {
    const auto example = [&](std::uint64_t index, Example e) {
      SampleRng rng(Random(11, Stream::data), index, 0);
      if (task.at == nullptr)
        task.sample(config, rng, e);
      else
        task.at(config, static_cast<std::int64_t>(index), e);
      return e;
    };
    for (std::uint64_t index = 0; index < 20 && (task.at == nullptr || task.distinct_inputs(config) > 20);
         ++index) {
      const Example fresh = example(index, {}), again = example(index, {Tokens(99, 1), Tokens(99, 1)});
      CHECK(fresh.input == again.input);
      CHECK(fresh.target == again.target);
    }
  });
}

TEST_CASE("every task: inputs are as long as length and min_length say", "[data]") {
  for_every_task([](const TaskConfig& config, const Task& task) {
    if (std::ranges::find(task.keys, "min_length") == task.keys.end()) return;
    std::set<std::int64_t> lengths;
    for_examples(config, [&](const Example& e) { lengths.insert(std::ssize(e.input)); });
    TaskConfig shortest = config;
    if (config.min_length > 0) shortest.length = config.min_length;
    CHECK(*lengths.begin() == task.size(shortest).input);
    CHECK(*lengths.rbegin() == task.size(config).input);
  });
}

TEST_CASE("every task: tokens have names of their own, which a space separates", "[data]") {
  for_every_task([](const TaskConfig& config, const Task& task) {
    const auto names = task.tokens(config);
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
    for (const std::string& name : names) {
      CHECK_FALSE(name.empty());
      CHECK(shown_token(name).find_first_of(" \t\n") == std::string::npos);
      CHECK_FALSE((task.sparse && name == "."));  // stands for no answer
    }
  });
}

TEST_CASE("every task: relevant positions lie in the sequence, answers alone have them", "[data][slow]") {
  for_every_task([](const TaskConfig& config, const Task& task) {
    if (task.relevant == nullptr) return;
    bool any = false;  // the first round of an induction depends on nothing
    std::set<std::int32_t> kinds;
    for_examples(config, [&](const Example& e) {
      for (std::size_t i = 0; i < e.target.size(); ++i) {
        if (e.target[i] == kIgnore) continue;
        std::vector<Relevant> found = {{-7}}, again;
        task.relevant(config, e, i, found);
        task.relevant(config, e, i, again);
        REQUIRE(found.front().key == -7);  // appended
        found.erase(found.begin());
        REQUIRE(found == again);
        Tokens keys, candidates;
        if (task.candidates != nullptr) task.candidates(config, e, i, candidates);
        for (const Relevant& r : found) {
          keys.push_back(r.key);
          kinds.insert(r.kind);
          const bool is_summed =
              r.kind < std::ssize(task.kinds) - static_cast<std::ptrdiff_t>(task.other_kinds);
          if (task.candidates != nullptr && is_summed) REQUIRE(std::ranges::count(candidates, r.key) == 1);
        }
        any = any || !keys.empty();
        const auto last = std::ssize(e.input) + static_cast<std::int64_t>(i);  // exclusive
        for (const std::int32_t key : keys) REQUIRE((key >= 0 && key < last));
        REQUIRE(std::set<std::int32_t>(keys.begin(), keys.end()).size() == keys.size());
      }
    });
    CHECK(any);
    CHECK(std::ssize(kinds) == std::ssize(task.kinds));
    CHECK(*kinds.rbegin() + 1 == std::ssize(task.kinds));
  });
}

TEST_CASE("every task: varied examples fit the model, and are a pure function of seed and index", "[data]") {
  for_every_task([](const TaskConfig& config, const Task& task) {
    const ExampleSize size = task.size(config);
    const auto vocabulary = std::ssize(task.tokens(config));
    const std::int64_t train = task.at == nullptr ? 0 : 1;
    const Dataset data(config, {.train = train}, usual_layout(size), 3),
        same(config, {.train = train}, usual_layout(size), 3);
    CHECK((data.size(Split::varied) > 0) == (task.vary != nullptr));
    if (task.vary == nullptr) return;
    Batch batch;
    CHECK_NOTHROW(data.fill(Split::varied, 0, 200, batch));
    std::set<Tokens> inputs;
    for (std::int64_t i = 0; i < 200; ++i) {
      Example e, again{Tokens(99, 1), Tokens(99, 1)};
      data.example(Split::varied, i, e);
      same.example(Split::varied, i, again);
      REQUIRE(e.input == again.input);
      REQUIRE(e.target == again.target);
      inputs.insert(e.input);
      REQUIRE((std::ssize(e.input) >= 1 && std::ssize(e.input) <= size.input));
      REQUIRE((std::ssize(e.target) >= 1 && std::ssize(e.target) <= size.target));
      for (const std::int32_t token : e.input) REQUIRE((token >= 0 && token < vocabulary));
      for (const std::int32_t token : e.target)
        REQUIRE((token == kIgnore || (token >= 0 && token < vocabulary)));
      for (const auto& [query, key, kind] : data.alignments(e))
        REQUIRE((key >= 0 && key < std::ssize(e.input)));
    }
    CHECK(inputs.size() > 20);
  });
}

TEST_CASE("every task: the best constant answer has the accuracy that `chance` returns", "[data]") {
  for_every_task([](const TaskConfig& config, const Task& task) {
    std::map<std::int32_t, double> counts;
    std::map<std::int32_t, double> squares;  // of the occurrences in one example, which hang together
    double asked = 0, squares_of_none = 0;
    for_examples(config, [&](const Example& e) {
      std::map<std::int32_t, double> here;
      double n = 0;
      for (const std::int32_t token : e.target)
        if (token != kIgnore) {
          ++here[token];
          ++n;
        }
      for (const auto& [token, count] : here) {
        counts[token] += count;
        const double expected = task.chance(config) * n, excess = count - expected;
        squares[token] += excess * excess - expected * expected;
      }
      squares_of_none += std::pow(task.chance(config) * n, 2);
      asked += n;
    });
    const auto best =
        std::ranges::max_element(counts, [](const auto& a, const auto& b) { return a.second < b.second; });
    const double spread = std::sqrt(squares_of_none + squares[best->first]) / asked;
    INFO("answer " << task.tokens(config)[static_cast<std::size_t>(best->first)] << ", spread " << spread);
    const double chance = task.chance(config);
    CHECK((chance > 0 && chance <= 1));
    // The most frequent of several equally likely answers is luckier than any one of them.
    CHECK_THAT(best->second / asked, WithinAbs(chance, task.at == nullptr ? 5 * spread : 1e-12));
  });
}

TEST_CASE("every task: the lowest loss is a number from 0, and 0 where inputs determine answers",
          "[data][slow]") {
  for_every_task([](const TaskConfig& config, const Task& task) {
    if (task.floor == nullptr) return;
    CHECK(task.floor(config) >= 0);
    CHECK(std::isfinite(task.floor(config)));
    std::map<std::pair<std::size_t, Tokens>, std::int32_t>
        answers;  // by place and what a model may read there
    bool determined = true;
    for_examples(config, [&](const Example& e) {
      for (std::size_t i = 0; i < e.target.size(); ++i) {
        const auto end = task.causal ? e.input.begin() + static_cast<std::ptrdiff_t>(i) + 1 : e.input.end();
        const auto [first, is_new] = answers.try_emplace({i, Tokens(e.input.begin(), end)}, e.target[i]);
        determined = determined && (is_new || first->second == e.target[i]);
      }
    });
    if (task.floor(config) == 0) CHECK(determined);
  });
}

TEST_CASE("every task: the definition explains every key that is read", "[data]") {
  for_every_task([](const TaskConfig&, const Task& task) {
    CHECK_FALSE(task.summary.empty());
    CHECK(task.summary.size() <= 60);
    CHECK(task.summary.find('\n') == std::string_view::npos);
    for (const std::string_view key : task.keys)
      CHECK_THAT(std::string(task.definition), ContainsSubstring(std::string(key)));
  });
}

TEST_CASE("every task: inputs are drawn or listed, and distinct_inputs of them exist", "[data]") {
  for_every_task([](const TaskConfig& config, const Task& task) {
    CHECK((task.at == nullptr) != (task.sample == nullptr));
    std::set<Tokens> inputs;
    for_examples(config, [&](const Example& e) { inputs.insert(e.input); });
    const auto seen = static_cast<double>(inputs.size());
    if (task.at == nullptr)
      CHECK(task.distinct_inputs(config) >= seen);
    else
      CHECK(task.distinct_inputs(config) == seen);
  });
}

TEST_CASE("sparse tasks: where an answer is asked for follows from the input", "[data]") {
  for_every_task([](const TaskConfig& config, const Task& task) {
    if (!task.sparse) return;
    REQUIRE(task.knowable != nullptr);
    std::int64_t asked = 0, differing = 0;
    for_examples(config, [&](const Example& example) {
      for (std::size_t i = 0; i < example.input.size(); ++i) {
        const bool has_answer = example.target[i] != kIgnore,
                   is_knowable = task.knowable(config, example.input, i);
        asked += has_answer;
        differing += has_answer != is_knowable;
        REQUIRE(has_answer <= is_knowable);
      }
    });
    // Filler of associative_recall may be a key of the pairs, which is not asked for.
    CHECK(differing <= (config.name == "associative_recall" ? asked / 2 : 0));
  });
}

TEST_CASE("own input: what can be known is judged by what is there", "[data]") {
  const auto known = [](std::string_view name, const Tokens& input) {
    const auto source = rows::usual(name);
    std::string out;
    for (std::size_t i = 0; i < input.size(); ++i)
      out += checked_task(source->config()).knowable(source->config(), input, i) ? 'x' : '.';
    return out;
  };
  const TaskConfig brackets = rows::usual("dyck_match")->config();
  const auto close = static_cast<std::int32_t>(brackets.symbols);
  CHECK(known("dyck_match", {close, 0, close, close, 1, 0, close, close}) == "..x...xx");
  const TaskConfig recall = rows::usual("associative_recall")->config();
  const auto value = static_cast<std::int32_t>(recall.symbols / 2);
  REQUIRE(recall.pairs == 4);
  CHECK(known("associative_recall", {0, value, 1, value, 2, value, 3, value, 2, value, 9, 1}) ==
        "........x..x");
  CHECK(known("induction", {7, 1, 2, 3, 1, 2}) == "....xx");
  CHECK(known("induction", {7, 2, 9, 4, 7, 2}) == "....xx");  // a part of a round is enough
  CHECK(known("induction", {7, 2, 9, 7, 2, 9, 7}) == "...xxxx");
  CHECK(known("induction", {1, 2, 3, 4, 5}) == ".....");  // without a second round nothing follows
  CHECK(known("induction", {1}) == ".");
}
