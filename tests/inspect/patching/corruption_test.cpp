// What corrupts test sequences, and the log-probability of labels that do not differ.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "catch.h"
#include "inspect/hand_made.h"
#include "inspect/interventions.h"
#include "inspect/patching/corruption.h"
#include "inspect/patching/measure_edges.h"
#include "thimble/engine/error.h"
#include "train/data/table/table.h"

using namespace thimble;

namespace {

std::vector<ExamplePair> drawn(const TaskConfig& task, const std::string& corruption) {
  Config config = small_config();
  config.task = task;
  Evaluator evaluator(config);
  evaluator.select(Split::test, 60);
  const std::vector<ExamplePair> pairs = draw_examples(evaluator, corruption, 40);
  CHECK(pairs.size() <= 40);
  CHECK(pairs.size() > 20);
  return pairs;
}

std::set<std::size_t> changed_positions(const std::vector<std::int32_t>& a,
                                        const std::vector<std::int32_t>& b) {
  REQUIRE(a.size() == b.size());
  std::set<std::size_t> positions;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) positions.insert(i);
  return positions;
}

// Returns D of one sequence from its logits: minus the log-probabilities of its labels, by their definition.
double log_probability(const Result& result, const std::vector<std::int32_t>& labels) {
  const std::size_t v = result.logits.size() / labels.size();
  double d = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kIgnore) continue;
    double sum = 0;
    for (std::size_t j = 0; j < v; ++j) sum += std::exp(result.logits[i * v + j]);
    d += std::log(sum) - result.logits[i * v + static_cast<std::size_t>(labels[i])];
  }
  return d;
}

}  // namespace

TEST_CASE("exchanged match keys exchange the answers of their queries", "[inspect]") {
  for (const auto& [clean, corrupted] :
       drawn({.name = "associative_recall", .symbols = 16, .length = 20, .pairs = 4}, "target")) {
    CHECK(changed_positions(clean.input, corrupted.input).size() == 2);
    std::map<std::int32_t, std::int32_t> value_of;
    for (std::size_t pair = 0; pair < 4; ++pair)
      value_of[corrupted.input[2 * pair]] = corrupted.input[2 * pair + 1];
    for (std::size_t i = 0; i < clean.target.size(); ++i)
      CHECK(corrupted.target[i] == (clean.target[i] == kIgnore ? kIgnore : value_of.at(corrupted.input[i])));
    CHECK(changed_positions(clean.target, corrupted.target).size() == 2);
  }
  // The second round as it was, behind a first one with two tokens exchanged.
  for (const auto& [clean, corrupted] :
       drawn({.name = "induction", .symbols = 30, .length = 8, .min_length = 6}, "target")) {
    const std::set<std::size_t> changed = changed_positions(clean.input, corrupted.input);
    REQUIRE(changed.size() == 2);
    const std::size_t one = *changed.begin(), other = *changed.rbegin(),
                      period = (clean.input.size() + 1) / 2;
    CHECK(other < period);
    CHECK((clean.input[one] == corrupted.input[other] && clean.input[other] == corrupted.input[one]));
    for (std::size_t i = 0; i < clean.target.size(); ++i) {
      std::vector<std::size_t> places;
      for (std::size_t place = 0; place < period; ++place)
        if (corrupted.input[place] == clean.input[i]) places.push_back(place);
      if (i < period) CHECK(corrupted.target[i] == clean.target[i]);
      if (i >= period && places.size() == 1) CHECK(corrupted.target[i] == corrupted.input[places[0] + 1]);
    }
    CHECK(changed_positions(clean.target, corrupted.target).size() >= 2);
  }
  CHECK_THROWS_WITH(drawn({.name = "reverse", .symbols = 3, .length = 6}, "target"),
                    ContainsSubstring("requires a task in which every answer follows an earlier occurrence"));
}

TEST_CASE("answers are exchanged only where all of them follow an earlier token", "[inspect]") {
  const auto exchange = [](const std::string& other) {
    DataTexts texts;
    texts.main.name = "rows.jsonl";
    for (int i = 0; i < 200; ++i) {
      std::string row =
          R"({"input": "x @ y # x y", "target": "_ _ _ _ @ #", "attends": [[4, 1, "k"], [5, 3, "k"]]})";
      if (i % 3 == 0 && !other.empty()) row = other;
      std::ranges::replace(row, '@', "abcdefghijk"[i % 11]);
      std::ranges::replace(row, '#', "lmnopqrstuvw0123456"[i % 19]);
      texts.main.text += row + "\n";
    }
    Config config = small_config();
    config.task = {.name = "file"};
    Evaluator evaluator(OpenConfig(config, std::make_shared<const Table>(texts)));
    evaluator.select(Split::test, 60);
    return draw_examples(evaluator, "target", 40).size();
  };
  CHECK(exchange("") > 5);
  for (const char* other : {R"({"input": "z @ # x", "target": "_ _ _ @", "attends": [[3, 1, "k"]]})",
                            R"({"input": "x @ # x", "target": "_ _ _ y", "attends": [[3, 1, "k"]]})",
                            R"({"input": "x x @ #", "target": "@ _ _ _", "attends": [[0, 2, "k"]]})"})
    CHECK_THROWS_WITH(exchange(other), ContainsSubstring("requires a task in which every answer"));
}

TEST_CASE("a token is replaced by one that another sequence has there", "[inspect]") {
  const TaskConfig task{.name = "associative_recall", .symbols = 16, .length = 20, .pairs = 4};
  for (const auto& [clean, corrupted] : drawn(task, "token 2")) {
    CHECK(changed_positions(clean.input, corrupted.input) == std::set<std::size_t>{2});
    CHECK(corrupted.input[2] < 8);  // a key, as every sequence has there
    CHECK(clean.target == corrupted.target);
  }
  for (const auto& [clean, corrupted] :
       drawn({.name = "induction", .symbols = 30, .length = 8, .min_length = 6}, "token 11"))
    CHECK(changed_positions(clean.input, corrupted.input) == std::set<std::size_t>{11});
  CHECK_THROWS_WITH(drawn(task, "token 20"), ContainsSubstring("positions count from 0, up to 19"));
  CHECK_THROWS_WITH(drawn(task, "token"),
                    ContainsSubstring("must be resample, order, target, or \"token K\""));
  CHECK_THROWS_AS(drawn(task, "token -1"), ConfigError);
}

TEST_CASE("shuffled sequences have the same tokens and labels", "[inspect]") {
  for (auto [clean, corrupted] : drawn({.name = "sort", .symbols = 10, .length = 8}, "order")) {
    CHECK(clean.input != corrupted.input);
    CHECK(clean.target == corrupted.target);
    std::ranges::sort(clean.input);
    std::ranges::sort(corrupted.input);
    CHECK(clean.input == corrupted.input);
  }
}

TEST_CASE("where labels do not differ the measure is their log-probability", "[inspect]") {
  for (const Config& config : {small_config(), rich_config(), sequence_config()}) {
    Trained trained(config);
    Plain none;
    const Result clean = plain_pass(trained, 0, none);
    std::int64_t other = 1;
    Result corrupted = plain_pass(trained, 1, none);
    while (corrupted.batch.lengths != clean.batch.lengths) corrupted = plain_pass(trained, ++other, none);
    const std::vector<std::vector<Real>> outputs = none.seen;
    PairBatch pair{clean.batch, corrupted.batch};
    pair.corrupted.labels = clean.batch.labels;
    pair.corrupted.rows = clean.batch.rows;
    PairRunner runner(trained.evaluator, {pair}, measure_of({&pair, 1}));
    REQUIRE(runner.measure() == PatchMeasure::log_probability);
    const std::vector<std::int32_t>& labels = clean.batch.labels;
    const double base = log_probability(clean, labels), total = log_probability(corrupted, labels) - base;
    for (const PatchingReport::Head& head : measure_patching(runner).heads) {
      Plain hooks = change(trained, head.id);
      hooks.rows = outputs[static_cast<std::size_t>(head.id.layer)];
      const double expected = (log_probability(plain_pass(trained, 0, hooks), labels) - base) / total;
      CHECK_THAT(head.noising.all.effect, WithinAbs(expected, 1e-3 * kTolerance / 2e-5));
    }

    // The gradient, by differences of the definition.
    const auto v = static_cast<std::int64_t>(clean.logits.size() / labels.size());
    Tensor logits({std::ssize(labels), v});
    std::ranges::transform(clean.logits, logits.data(), [](double x) { return static_cast<Real>(x); });
    const Tensor seed = runner.seed(0, logits.matrix());
    for (std::size_t k = 0; k < clean.logits.size(); ++k) {
      constexpr double kStep = 1e-5;
      Result above = clean, below = clean;
      above.logits[k] += kStep;
      below.logits[k] -= kStep;
      const double slope = (log_probability(above, labels) - log_probability(below, labels)) / (2 * kStep);
      CHECK_THAT(static_cast<double>(seed.data()[k]), WithinAbs(slope, 1e-6));
    }
  }
}

TEST_CASE("answers that can only be guessed have no part in the log-probability", "[inspect]") {
  Config config = small_config();
  config.task = {.name = "induction", .symbols = 30, .length = 8};
  config.model.attention.mask = Mask::causal;
  Trained trained(config);
  const std::vector<PairBatch> pairs =
      batches_of(trained.evaluator.dataset(), draw_examples(trained.evaluator, "order", 1));
  const PairRunner runner(trained.evaluator, pairs, measure_of(pairs));
  const Tensor seed = runner.seed(0, Tensor({15, 30}).matrix());
  for (std::int64_t row = 0; row < 15; ++row) CHECK((seed.matrix().row(row)[0] != 0) == (row >= 7));
}

TEST_CASE("exchanged match keys pass through the key of a hand-made induction head", "[inspect]") {
  const hand_made::HandMade made = hand_made::induction();
  Evaluator evaluator(made.config);
  hand_made::give(made, evaluator);
  evaluator.select(Split::test, 200);
  const std::vector<ExamplePair> pairs = draw_examples(evaluator, "target", 40);
  const std::vector<PairBatch> batches = batches_of(evaluator.dataset(), pairs);
  REQUIRE(measure_of(batches) == PatchMeasure::logit_difference);
  PairRunner runner(evaluator, batches);
  const EdgesReport report = measure_edges(runner, runner, runner, 3);
  for (std::size_t e = 0; e < report.effects.size(); ++e) {
    const std::string name = report.graph.name(e);
    INFO(name << ": " << report.effects[e].exact.effect);
    const bool is_path = name == "embedding -> 0.0 value" || name == "0.0 -> 1.0 key" ||
                         name == "embedding -> 1.0 value" || name == "1.0 -> logits";
    CHECK((std::abs(report.effects[e].exact.effect) > 0.2) == is_path);
  }
}
