// Overlaps of heads on sequences made by hand, and matches of trained models.
#include "program/compare/heads.h"

#include <cmath>

#include "catch.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace {

ModelConfig model_of(std::int64_t heads, Mask mask = Mask::none) {
  ModelConfig model;
  model.layers = 1;
  model.heads = heads;
  model.attention.mask = mask;
  return model;
}

ForwardTrace trace_of(std::size_t length, std::vector<double> attention) {
  ForwardTrace trace;
  trace.tokens.resize(length);
  trace.attention = std::move(attention);
  return trace;
}

Config small(std::uint64_t seed, std::int64_t heads) {
  return parse_config(
      "task: {name: reverse, length: 6}\ndata: {train: 500, validation: 20, test: 40}\n"
      "model: {d_model: 16, d_ff: 16}\ntrain: {steps: 30, batch: 16, schedule: {warmup: 5}, threads: 1}\n",
      "small", {"train.seed=" + std::to_string(seed), "model.heads=" + std::to_string(heads)});
}

std::size_t matched(const HeadComparison& comparison) {
  return static_cast<std::size_t>(std::ranges::count_if(
      comparison.matches, [](const HeadMatch& match) { return match.match.has_value(); }));
}

ModelSource trained(const TemporaryDirectory& directory, const std::string& name, const Config& config) {
  train(config, {.directory = (directory / name).string()});
  return open_run(directory / name);
}

}  // namespace

TEST_CASE("the overlap is the attention that two heads share", "[compare]") {
  const ModelConfig one = model_of(1), two = model_of(2);
  const Attention a{trace_of(2, {1, 0, 0.25, 0.75})};
  const Attention b{trace_of(2, {0, 1, 0.5, 0.5, 1, 0, 0.25, 0.75})};
  const auto [same, queries] = overlaps(one, a, two, b);
  CHECK(queries(0, 0) == 2);
  CHECK(same(0, 0) == (0 + 0.75) / 2);  // 1 - (|1| + |-1|) / 2 and 1 - (0.25 + 0.25) / 2
  CHECK(same(0, 1) == 1);
  // Only the second query has two visible keys.
  const Overlaps causal = overlaps(model_of(1, Mask::causal), a, two, b);
  CHECK(causal.values(0, 0) == 0.75);
  CHECK(causal.queries(0, 0) == 1);
  CHECK(overlaps(two, b, model_of(1, Mask::causal), a).values(0, 0) == 0.75);
}

TEST_CASE("a shifted overlap compares different sequences of the same length", "[compare]") {
  const ModelConfig model = model_of(1);
  const Attention traces{trace_of(2, {1, 0, 1, 0}), trace_of(3, std::vector<double>(9, 1.0 / 3)),
                         trace_of(2, {0, 1, 1, 0})};
  CHECK_THAT(overlaps(model, traces, model, traces).values(0, 0), WithinAbs(1, 1e-12));
  const Overlaps shifted = overlaps(model, traces, model, traces, true);
  CHECK(shifted.values(0, 0) == 0.5);
  CHECK(shifted.queries(0, 0) == 2);  // of the third sequence
  const Overlaps alone = overlaps(model, {traces[1]}, model, {traces[1]}, true);
  CHECK(std::isnan(alone.values(0, 0)));
  CHECK(alone.queries(0, 0) == 0);
}

TEST_CASE("heads match themselves, and more heads stay unmatched", "[compare]") {
  const TemporaryDirectory directory;
  const ModelSource two = trained(directory, "two", small(1, 2)),
                    four = trained(directory, "four", small(2, 4));
  const HeadComparison self = compare_heads(four, four, 40, 2);
  CHECK(self.sequences == 40);
  CHECK(self.examples.size() == 2);
  REQUIRE(self.matches.size() == 4);
  for (const HeadMatch& match : self.matches) {
    CHECK(match.match == match.head);
    CHECK_THAT(match.overlap, WithinAbs(1, 1e-6));
    CHECK(match.elsewhere < match.overlap);
    CHECK(match.chance < match.overlap);
    CHECK(match.chance > 0);
  }
  const HeadComparison other = compare_heads(two, four, 40, 0);
  CHECK(other.matches.size() == 2);
  CHECK(other.unmatched.size() == 4 - matched(other));
  const HeadComparison back = compare_heads(four, two, 40, 0);
  CHECK(std::ranges::count_if(back.matches, [](const HeadMatch& m) { return !std::isnan(m.overlap); }) == 2);
  CHECK(back.unmatched.size() == 2 - matched(back));
}

TEST_CASE("a match is held against other sequences and the best of untrained heads", "[compare]") {
  const TemporaryDirectory directory;
  Config two = small(1, 2), four = small(2, 4);
  two.model.layers = four.model.layers = 2;
  const ModelSource first = trained(directory, "two", two), second = trained(directory, "four", four);
  ModelSource on_same_data = second;
  on_same_data.config.train.seed = two.train.seed;
  const auto attention = [](const ModelSource& model, std::optional<std::uint64_t> untrained = {}) {
    Attention traces;
    trace_split(model, Split::test, 40, [&](const ForwardTrace& trace) { traces.push_back(trace); },
                {.untrained = untrained});
    return traces;
  };
  const Attention a = attention(first), b = attention(on_same_data);
  const Overlaps same = overlaps(two.model, a, four.model, b),
                 elsewhere = overlaps(two.model, a, four.model, b, true);
  std::vector<double> chance(4);
  for (std::uint64_t k = 0; k < kChanceModels; ++k) {
    const DoubleMatrix untrained =
        overlaps(two.model, a, four.model, attention(on_same_data, 0x756e'7472'6169'6e00 + k)).values;
    for (std::int64_t i = 0; i < 4; ++i)
      chance[static_cast<std::size_t>(i)] += *std::max_element(untrained.row(i), untrained.row(i) + 8) / 3;
  }
  const HeadComparison comparison = compare_heads(first, second, 40, 0);
  bool in_second_layer = false;
  REQUIRE(comparison.matches.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const HeadMatch& match = comparison.matches[i];
    CAPTURE(i);
    CHECK((match.head == HeadId{static_cast<std::int64_t>(i) / 2, static_cast<std::int64_t>(i) % 2}));
    CHECK_THAT(match.chance, WithinAbs(chance[i], 1e-12));
    if (!match.match) continue;
    in_second_layer |= match.match->layer == 1;
    const std::int64_t j = 4 * match.match->layer + match.match->head;
    CHECK(match.overlap == same.values(static_cast<std::int64_t>(i), j));
    CHECK(match.elsewhere == elsewhere.values(static_cast<std::int64_t>(i), j));
    CHECK(match.queries == std::llround(same.queries(static_cast<std::int64_t>(i), j)));
    CHECK(match.elsewhere_queries == std::llround(elsewhere.queries(static_cast<std::int64_t>(i), j)));
  }
  CHECK(in_second_layer);
}

TEST_CASE("a pair that is not above chance is no match", "[compare]") {
  const TemporaryDirectory directory;
  Config untrained = small(2, 4);
  untrained.train.steps = 1;
  const HeadComparison comparison =
      compare_heads(trained(directory, "a", small(1, 4)), trained(directory, "b", untrained), 40, 0);
  for (const HeadMatch& match : comparison.matches) {
    CHECK(match.match.has_value() == (match.overlap > match.chance));
    CHECK(std::isnan(match.elsewhere) == !match.match.has_value());
  }
  CHECK(matched(comparison) < 4);
  CHECK(comparison.unmatched.size() == 4 - matched(comparison));
  CHECK(std::ranges::is_sorted(comparison.unmatched));
}

TEST_CASE("models of different lengths read the shorter sequences", "[compare]") {
  const TemporaryDirectory directory;
  Config longer = small(1, 2);
  longer.task.length = 9;
  const ModelSource a = trained(directory, "a", longer), b = trained(directory, "b", small(1, 2));
  const HeadComparison there = compare_heads(a, b, 40, 1), back = compare_heads(b, a, 40, 1);
  CHECK(there.obstacle.empty());
  CHECK(there.examples[0].first.tokens.size() == 6);
  CHECK(there.examples[0].first.tokens == back.examples[0].first.tokens);
  longer.task.name = "sort";
  CHECK(compare_heads(trained(directory, "c", longer), b, 40, 1).obstacle ==
        "the tasks differ, sort and reverse; heads are compared on the same sequences");
  Config more = small(1, 2);
  more.task.symbols = 7;
  CHECK(compare_heads(trained(directory, "d", more), b, 40, 1).obstacle ==
        "the vocabularies differ; heads are compared on the same sequences");
}
