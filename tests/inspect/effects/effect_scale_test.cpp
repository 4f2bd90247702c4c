// The scale of effects of trained models, measured a second time: sequence by sequence, and with other evaluators.
#include "inspect/effects/effect_scale.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "catch.h"
#include "inspect/interventions.h"

using namespace thimble;

namespace {

// Next tokens of a task with a lowest loss above 0, in sequences of different lengths.
Config induction_config() {
  Config config = small_config();
  config.task = {.name = "induction", .symbols = 6, .length = 5, .min_length = 3};
  config.data = {.train = 0, .validation = 20, .test = 150};
  config.model.layers = 2;
  config.model.attention.mask = Mask::causal;
  return config;
}

// Returns how much the means per label move at most, if all sequences move in the same direction.
double mean_move(const EvalResult& before, const EvalResult& after, bool of_loss) {
  double moves = 0, labels = 0;
  for (std::size_t i = 0; i < before.per_sequence.size(); ++i) {
    const SequenceResult &x = before.per_sequence[i], &y = after.per_sequence[i];
    moves += of_loss ? std::abs(y.loss - x.loss) : std::abs(static_cast<double>(y.correct - x.correct));
    labels += static_cast<double>(x.labeled);
  }
  return moves / labels;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x;
  return sum / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  double squares = 0;
  for (const double x : values) squares += std::pow(x - mean(values), 2);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

TEST_CASE("the scale starts at the best constant answer and ends at the lowest loss", "[inspect]") {
  for (const Config& config : {induction_config(), rich_config(), sequence_config(), writing_config()}) {
    CAPTURE(config.task.name);
    Trained trained(config, 100);
    const AnswerBounds bounds = bound_answers(trained.evaluator);
    const EvalResult baseline = trained.evaluator.run();
    const EffectScale scale = measure_scale(trained.evaluator, baseline, bounds, 0.03);
    std::map<std::int32_t, double> counts;
    double labels = 0;
    std::vector<std::vector<std::int32_t>> of_sequence;
    for (std::int64_t i = 0; i < trained.evaluator.sequences(); ++i) {
      Batch batch;
      trained.trainer.dataset().fill(Split::test, i, 1, batch);
      std::erase(batch.labels, kIgnore);
      for (const std::int32_t label : batch.labels) ++counts[label];
      labels += static_cast<double>(batch.labels.size());
      of_sequence.push_back(batch.labels);
    }
    std::int32_t usual = counts.begin()->first;
    double entropy = 0;
    for (const auto& [label, count] : counts) {
      if (count > counts[usual]) usual = label;
      entropy += count / labels * std::log(labels / count);
    }
    CHECK_THAT(scale.chance_accuracy, WithinRel(counts[usual] / labels, 1e-12));
    CHECK_THAT(scale.chance_loss, WithinRel(entropy, 1e-12));

    const auto floor = trained.trainer.dataset().task().floor;
    const bool fresh_tokens = config.model.kind == ModelKind::encoder && floor != nullptr;
    CHECK(scale.lowest_loss == (fresh_tokens ? std::optional(floor(config.task)) : std::nullopt));
    CHECK_THAT(scale.smallest_loss, WithinRel(0.03 * (entropy - scale.lowest_loss.value_or(0)), 1e-12));
    CHECK_THAT(scale.smallest_accuracy, WithinRel(0.03 * (1 - counts[usual] / labels), 1e-12));

    std::vector<SequenceResult> constant;
    for (const auto& sequence : of_sequence) {
      SequenceResult& result = constant.emplace_back();
      for (const std::int32_t label : sequence) {
        result.loss += std::log(labels / counts[label]);
        result.capped_loss += std::min(entropy, std::log(labels / counts[label]));
      }
      result.correct = std::ranges::count(sequence, usual);
      result.labeled = std::ssize(sequence);
    }
    const Effect above = effect_between(constant, baseline.per_sequence, bounds);
    CHECK_THAT(bounds.loss_cap, WithinRel(entropy, 1e-12));
    CHECK_THAT(scale.above_chance.capped_loss.mean, WithinAbs(above.capped_loss.mean, 1e-12));
    CHECK_THAT(scale.above_chance.loss_change, WithinAbs(above.loss_change, 1e-12));
    CHECK(scale.above_chance.accuracy.mean == above.accuracy.mean);
    CHECK_THAT(scale.above_chance.interval.low, WithinAbs(above.interval.low, 1e-9));
    CHECK_THAT(scale.above_chance.accuracy.interval.high, WithinAbs(above.accuracy.interval.high, 1e-9));
    CHECK(scale.at_chance == is_at_chance(scale, baseline));
  }
  CHECK(make_dataset(induction_config()).task().floor(induction_config().task) > 0.1);
}

TEST_CASE("untrained models of a scale are twelve of the next seeds, on the same sequences", "[inspect]") {
  const Config config = rich_config();
  Trained trained(config);
  const std::string weights = trained.evaluator.model().parameters().hash();
  const EffectScale scale = measure_scale(trained.evaluator, trained.evaluator.run(), {}, 0.01);
  CHECK(trained.evaluator.model().parameters().hash() == weights);
  std::vector<double> accuracies, losses;
  for (std::uint64_t k = 1; k <= 12; ++k) {
    Evaluator untrained(config);
    untrained.model().init(config.train.seed + k);
    untrained.select(Split::test, trained.evaluator.sequences());
    const EvalResult result = untrained.run();
    accuracies.push_back(result.accuracy);
    losses.push_back(result.loss);
  }
  CHECK_THAT(scale.untrained_accuracy.mean, WithinRel(mean(accuracies), 1e-12));
  CHECK_THAT(*scale.untrained_accuracy.sd, WithinRel(deviation(accuracies), 1e-9));
  CHECK_THAT(scale.untrained_loss.mean, WithinRel(mean(losses), 1e-12));
  CHECK_THAT(*scale.untrained_loss.sd, WithinRel(deviation(losses), 1e-9));
}

TEST_CASE("the rounding error is the larger one of two passes, without regard to signs", "[inspect]") {
  int first_is_larger = 0, second_is_larger = 0, moved_both_ways = 0, moved_answers = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    Config config = rich_config();
    config.train.seed = seed;
    Trained trained(config, 60, 3);
    // Two answers are equally likely, so that rounding moves answers too.
    const std::span<Real> values = trained.evaluator.model().parameters().values();
    for (const auto& entry : trained.parameters().entries())
      if (entry.name.starts_with("output."))
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(entry.offset), entry.size() / 2,
                    values.begin() + static_cast<std::ptrdiff_t>(entry.offset + entry.size() / 2));
    const EvalResult before = trained.evaluator.run();
    const EffectScale scale = measure_scale(trained.evaluator, before, {}, 0.01);
    double losses[2], accuracies[2];
    for (const std::uint32_t pass : {0U, 1U}) {
      const EvalResult after = trained.evaluator.run([&] { return rounding_hooks(seed, pass); });
      losses[pass] = mean_move(before, after, true);
      accuracies[pass] = mean_move(before, after, false);
      moved_both_ways += std::abs(after.loss - before.loss) < 0.9 * losses[pass];
    }
    CHECK_THAT(scale.rounding_loss, WithinRel(std::max(losses[0], losses[1]), 1e-9));
    CHECK_THAT(scale.rounding_accuracy, WithinRel(std::max(accuracies[0], accuracies[1]), 1e-9));
    first_is_larger += losses[0] > losses[1];
    second_is_larger += losses[1] > losses[0];
    moved_answers += accuracies[0] > accuracies[1];
  }
  CHECK(first_is_larger > 0);
  CHECK(second_is_larger > 0);
  CHECK(moved_both_ways > 0);
  CHECK(moved_answers > 0);
}

namespace {

// Applies other hooks, and compares each value with what it was.
struct Moves : ChunkHooks {
  explicit Moves(std::unique_ptr<ChunkHooks> hooks) : hooks_(std::move(hooks)) {}

  void begin(const Chunk& chunk) override { hooks_->begin(chunk); }
  bool may_replace(Site site) const override {
    const bool may = hooks_->may_replace(site);
    CHECK(may);
    return may;
  }
  bool replace(Site site, const Shape& shape, MatrixView value) override {
    const std::vector<Real> before(value.data, value.data + value.elements());
    const bool replaced = hooks_->replace(site, shape, value);
    CHECK(replaced);
    for (std::int64_t row = 0; row < value.rows; ++row) {
      std::vector<bool> signs;
      for (std::int64_t c = 0; c < value.cols; ++c) {
        const double was = static_cast<double>(before[static_cast<std::size_t>(row * value.cols + c)]),
                     is = static_cast<double>(value.row(row)[c]);
        if (was == 0) continue;
        const double move = (is / was - 1) / static_cast<double>(std::numeric_limits<Real>::epsilon());
        outside += std::abs(std::abs(move) - (replaced ? 1 : 0)) > 0.5;
        if (replaced) signs.push_back(move > 0);
      }
      if (signs.size() >= 160) rows.push_back(signs);
    }
    return replaced;
  }
  std::vector<std::vector<bool>> rows;  // whether values moved up
  int outside = 0;

 private:
  std::unique_ptr<ChunkHooks> hooks_;
};

}  // namespace

TEST_CASE("rounding hooks move every value by one unit, up or down at random", "[inspect]") {
  Config config = rich_config();
  config.model.d_model = 160;  // signs are drawn for 128 columns at once
  Trained trained(config, 60, 0);
  REQUIRE(trained.evaluator.chunks().size() > 1);
  std::set<std::vector<bool>> distinct;
  std::size_t rows = 0;
  for (const std::uint32_t pass : {0U, 1U}) {
    Moves moves(rounding_hooks(1, pass));
    trained.evaluator.observe(moves);
    CHECK(moves.outside == 0);
    double ups = 0, all = 0;
    for (const std::vector<bool>& row : moves.rows) {
      ups += static_cast<double>(std::ranges::count(row, true));
      all += static_cast<double>(row.size());
      CHECK_FALSE(std::equal(row.begin(), row.begin() + 32, row.begin() + 128));
    }
    CHECK_THAT(ups / all, WithinAbs(0.5, 2 / std::sqrt(all)));
    rows += moves.rows.size();
    distinct.insert(moves.rows.begin(), moves.rows.end());
  }
  CHECK(rows > 1000);
  CHECK(distinct.size() == rows);  // of positions, sequences, sites and passes
}
