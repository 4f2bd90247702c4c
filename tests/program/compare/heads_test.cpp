// Overlaps of heads on sequences made by hand, and matches of trained models.
#include "program/compare/heads.h"

#include <cmath>
#include <random>

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
      "model: {d_model: 16, d_ff: 16}\ntrain: {steps: 200, batch: 16, optimizer: {lr: 5e-3}, schedule: {warmup: 5}, threads: 1}\n",
      "small", {"train.seed=" + std::to_string(seed), "model.heads=" + std::to_string(heads)});
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

TEST_CASE("an overlap in the last block is of the queries that have a label", "[compare]") {
  ModelConfig model = model_of(1);
  Attention a{trace_of(2, {1, 0, 0.25, 0.75})}, b{trace_of(2, {0, 1, 0.25, 0.75})};
  a[0].targets = b[0].targets = {kIgnore, 3};
  CHECK(overlaps(model, a, model, b).values(0, 0) == 1);
  model.output.per = OutputPer::sequence;
  model.output.pooling = Pooling::last;
  CHECK(overlaps(model, a, model, b).values(0, 0) == 1);
  model.output.pooling = Pooling::first;
  CHECK(overlaps(model, a, model, b).values(0, 0) == 0);
  model.output.pooling = Pooling::mean;
  CHECK(overlaps(model, a, model, b).queries(0, 0) == 2);
  model.layers = 2;  // what the first block adds is read at other positions
  model.output.pooling = Pooling::last;
  for (Attention* both : {&a, &b}) {
    const std::vector<double> first = (*both)[0].attention;
    (*both)[0].attention.insert((*both)[0].attention.end(), first.begin(), first.end());
  }
  CHECK(overlaps(model, a, model, b).queries(0, 0) == 2);
  CHECK(overlaps(model, a, model, b).queries(1, 1) == 1);
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
  std::vector<std::vector<double>> best(1 + kChanceModels, std::vector<double>(4));
  for (std::size_t m = 0; m < best.size(); ++m) {
    const DoubleMatrix found =
        m == 0 ? same.values
               : overlaps(two.model, a, four.model, attention(on_same_data, 0x756e'7472'6169'6e00 + m - 1))
                     .values;
    for (std::int64_t i = 0; i < 4; ++i)
      best[m][static_cast<std::size_t>(i)] = *std::max_element(found.row(i), found.row(i) + 8);
  }
  const std::vector<double> chance = chance_levels(best);
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
  // Every head of the second model has a match or is listed without one.
  std::vector<HeadId> listed = comparison.unmatched;
  for (const HeadMatch& match : comparison.matches)
    if (match.match) listed.push_back(*match.match);
  std::ranges::sort(listed);
  std::vector<HeadId> of_second;
  for (std::int64_t h = 0; h < 8; ++h) of_second.push_back({h / 4, h % 4});
  CHECK(listed == of_second);
  CHECK(in_second_layer);
}

TEST_CASE("untrained models have a match in 5 % of comparisons, whatever their heads have in common",
          "[compare]") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const auto share_with_match = [&](double common, double trained) {
    constexpr int kComparisons = 4000;
    int matched = 0;
    for (int n = 0; n < kComparisons; ++n) {
      std::vector<std::vector<double>> best(1 + kChanceModels);
      for (std::vector<double>& of_model : best) {
        const double shared = common * normal(random);
        for (int i = 0; i < 8; ++i)  // heads differ in how much they overlap, and how that varies
          of_model.push_back(0.3 + 0.05 * i + 0.01 * (1 + i) * (shared + normal(random)));
      }
      best[0][3] += trained;
      const std::vector<double> levels = chance_levels(best);
      bool any = false;
      for (std::size_t i = 0; i < levels.size(); ++i) any |= best[0][i] > levels[i];
      matched += any ? 1 : 0;
    }
    return static_cast<double>(matched) / kComparisons;
  };
  for (const double common : {0.0, 0.5, 3.0}) CHECK_THAT(share_with_match(common, 0), WithinAbs(0.05, 0.011));
  CHECK(share_with_match(0.5, 0.5) > 0.99);
  // A head without spread, as one that attends to a fixed key, cannot match.
  CHECK(chance_levels(std::vector<std::vector<double>>(20, {0.75}))[0] == 0.75);
}
