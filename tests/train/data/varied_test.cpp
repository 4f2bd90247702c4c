// Varied examples: right answers, and keys at other positions and distances than those of the usual ones.
#include <algorithm>
#include <map>
#include <set>

#include "catch.h"
#include "small_rows.h"
#include "thimble/train/listing.h"

using namespace thimble;
using rows::Tokens;

namespace {

constexpr std::int64_t kExamples = 400;

std::vector<Example> examples(const Dataset& data, Split split) {
  std::vector<Example> out(kExamples);
  for (std::int64_t i = 0; i < kExamples; ++i) data.example(split, i, out[static_cast<std::size_t>(i)]);
  return out;
}

Dataset dataset_of(const TaskConfig& task, Layout layout = Layout::position) {
  return Dataset(task, {.train = 0}, layout, 9);
}

// Returns the share of the most frequent distance from an answer to a key that it depends on.
double most_frequent_distance(const Dataset& data, Split split) {
  std::map<std::int32_t, double> counts;
  double all = 0;
  for (const Example& e : examples(data, split))
    for (const auto& [query, key, kind] : data.alignments(e)) {
      ++counts[key - query];
      ++all;
    }
  return std::ranges::max_element(counts, {}, [](const auto& c) { return c.second; })->second / all;
}

std::int32_t at(const Tokens& tokens, std::int32_t position) {
  return tokens[static_cast<std::size_t>(position)];
}

}  // namespace

TEST_CASE("varied rounds of induction have several lengths, behind a prefix", "[tasks]") {
  for (const std::int64_t shortest : {0, 15, 3}) {
    const Dataset data =
        dataset_of({.name = "induction", .symbols = 40, .length = 16, .min_length = shortest});
    std::set<std::int32_t> distances;
    std::set<std::size_t> lengths;
    for (const Example& e : examples(data, Split::varied)) {
      lengths.insert(e.input.size());
      REQUIRE(e.input.size() <= 31);
      for (std::size_t i = 0; i + 1 < e.input.size(); ++i) REQUIRE(e.target[i] == e.input[i + 1]);
      const auto found = data.alignments(e);
      REQUIRE_FALSE(found.empty());
      REQUIRE(found.back().query + 1 == std::ssize(e.input));
      for (const auto& [query, key, kind] : found) {
        REQUIRE(at(e.input, key) == at(e.target, query));
        REQUIRE(at(e.input, key - 1) == at(e.input, query));
        REQUIRE(key - query == found[0].key - found[0].query);
      }
      distances.insert(found[0].query - found[0].key);
    }
    CHECK(*distances.rbegin() == 15);
    CHECK(*distances.begin() == (shortest == 3 ? 2 : 7));
    CHECK(std::ssize(distances) == *distances.rbegin() - *distances.begin() + 1);
    CHECK(lengths.size() >= 16);
    CHECK(most_frequent_distance(data, Split::varied) < 0.25);
  }
  CHECK(most_frequent_distance(dataset_of({.name = "induction", .symbols = 40, .length = 16}), Split::test) ==
        1);
}

TEST_CASE("varied keys of recall are as often far from the pairs as near", "[tasks]") {
  const Dataset data = dataset_of({.name = "associative_recall", .symbols = 40, .length = 32, .pairs = 4});
  const auto mean_query = [&](Split split) {
    double sum = 0, count = 0;
    for (const Example& e : examples(data, split))
      for (const auto& [query, key, kind] : data.alignments(e)) {
        REQUIRE(at(e.input, key) == at(e.target, query));
        REQUIRE(at(e.input, key - 1) == at(e.input, query));
        sum += query;
        ++count;
      }
    CHECK(count == 4 * kExamples);
    return sum / count;
  };
  CHECK(mean_query(Split::test) < 17);
  CHECK_THAT(mean_query(Split::varied), WithinAbs((8 + 30) / 2.0, 1));
}

TEST_CASE("the candidates of a pronoun are both nouns, and openers move them", "[tasks]") {
  const Dataset data = dataset_of({.name = "coreference"});
  std::int64_t two_openers = 0;
  for (const Example& e : examples(data, Split::varied)) {
    const auto found = data.alignments(e), candidates = data.candidates(e);
    REQUIRE(found.size() == 2);
    REQUIRE(candidates.size() == 2);
    REQUIRE(data.names()[static_cast<std::size_t>(at(e.input, found[0].query))] == "it");
    REQUIRE((found[0].kind == 0 && found[1].kind == 1 && found[1].key == std::ssize(e.input) - 1));
    REQUIRE(at(e.input, found[0].key) == at(e.target, found[0].query));
    for (const auto& [query, key, kind] : candidates)
      REQUIRE(data.names()[static_cast<std::size_t>(at(e.input, key - 1))] == "the");
    two_openers += candidates[0].key == 3 ? 1 : 0;
  }
  CHECK(two_openers > kExamples / 10);
}

TEST_CASE("the kinds of relations are agent and patient", "[tasks]") {
  const Dataset data = dataset_of({.name = "relations"});
  for (const Split split : {Split::test, Split::varied}) {
    for (const Example& e : examples(data, split)) {
      for (const auto& [query, key, kind] : data.alignments(e)) {
        const auto name = [&](std::int32_t token) { return data.names()[static_cast<std::size_t>(token)]; };
        const std::string pair = name(at(e.target, query)), noun = name(at(e.input, key));
        REQUIRE((kind == 0 ? pair.starts_with(noun + ">") : pair.ends_with(">" + noun)));
        REQUIRE(data.task().kinds[static_cast<std::size_t>(kind)] == (kind == 0 ? "agent" : "patient"));
      }
    }
  }
}

TEST_CASE("most varied brackets do not close the nearest opening one", "[tasks]") {
  const Dataset data = dataset_of({.name = "dyck_match", .symbols = 4, .length = 24});
  const auto nearest = [&](Split split) {
    double near = 0, all = 0;
    for (const Example& e : examples(data, split))
      for (const auto& [query, key, kind] : data.alignments(e)) {
        REQUIRE(at(e.input, key) == at(e.target, query));
        std::int32_t last = query - 1;
        while (at(e.input, last) == 4) --last;
        near += last == key ? 1 : 0;
        ++all;
      }
    return near / all;
  };
  CHECK(nearest(Split::varied) < 0.5);
  CHECK(nearest(Split::varied) < nearest(Split::test) - 0.1);
}

TEST_CASE("a weekday moves the parts of a varied date", "[tasks]") {
  const Dataset data = dataset_of({.name = "dates"}, Layout::seq2seq);
  std::int64_t with_weekday = 0;
  for (const Example& e : examples(data, Split::varied)) {
    const std::string text = token_text(data.names(), e.input);
    with_weekday += text.find("d a y _") != std::string::npos ? 1 : 0;
    for (const auto& [query, key, kind] : data.alignments(e)) {
      REQUIRE(data.task().kinds[static_cast<std::size_t>(kind)] == (query < 4   ? "year"
                                                                    : query < 7 ? "month"
                                                                                : "day"));
      if (kind == 0 && query >= 2) REQUIRE(at(e.input, key) == at(e.target, query));
    }
  }
  CHECK(with_weekday > kExamples / 4);
}

TEST_CASE("varied rows of a file are shuffled, behind the start of another", "[tasks]") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += fmt::format("a{0} b{0} c{0}{1}\tx{0}\n", i, i % 2 == 0 ? " d e" : "");
  const Dataset data(rows::table_of(text), {.train = 100}, Layout::sequence, 9);
  std::set<std::int64_t> places;
  std::int64_t longer = 0;
  for (std::int64_t i = 0; i < kExamples; ++i) {
    Example e;
    data.example(Split::varied, i, e);
    const std::string row = data.names()[static_cast<std::size_t>(e.target[0])].substr(1);
    REQUIRE(e.input.size() <= 5);
    std::vector<std::string> names;
    for (const std::int32_t token : e.input) names.push_back(data.names()[static_cast<std::size_t>(token)]);
    for (const char* letter : {"a", "b", "c"}) REQUIRE(std::ranges::count(names, letter + row) >= 1);
    places.insert(std::ranges::find(names, "a" + row) - names.begin());
    longer += e.input.size() == 4 ? 1 : 0;
  }
  CHECK(places.size() == 5);
  CHECK(longer > kExamples / 10);
}

TEST_CASE("what a row asks for at a token is asked for there in varied rows", "[tasks]") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += fmt::format("a{0} ? b{0}\t_ a{0} _\n", i);
  const Dataset data(rows::table_of(text), {.train = 100}, Layout::position, 9);
  for (const Example& e : examples(data, Split::varied))
    for (std::size_t i = 0; i < e.input.size(); ++i)
      REQUIRE((e.target[i] != kIgnore) == (data.names()[static_cast<std::size_t>(e.input[i])] == "?"));
}
