// Ablation and gradient importance, against plain passes over one sequence at a time.
#include "thimble/inspect/effects.h"
#include "thimble/train/json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include "catch.h"
#include "inspect/interventions.h"
#include "inspect/saved_model.h"
#include "inspect/timeline/head_log.h"
#include "thimble/inspect/inspect.h"
#include "thimble/inspect/patch.h"
#include "thimble/train/run.h"

using namespace thimble;

namespace {

// Returns the effect of replacing the head's output by rows(sequence).
template <class Rows>
Effect plain_effect(const Trained& trained, HeadId id, const Rows& rows) {
  Effect effect;
  double labeled = 0;
  for (std::int64_t i = 0; i < trained.evaluator.sequences(); ++i) {
    Plain untouched, changed = change(trained, id);
    changed.rows = rows(static_cast<std::size_t>(i));
    const Result before = plain_pass(trained, i, untouched), after = plain_pass(trained, i, changed);
    effect.loss_change += after.loss - before.loss;
    effect.accuracy.mean += after.correct - before.correct;
    labeled += before.labeled;
  }
  effect.loss_change /= labeled;
  effect.accuracy.mean /= labeled;
  return effect;
}

void expect_same_effect(const Effect& measured, const Effect& plain) {
  CHECK_THAT(measured.loss_change, WithinAbs(plain.loss_change, kTolerance));
  CHECK_THAT(measured.accuracy.mean, WithinAbs(plain.accuracy.mean, 1e-12));
}

void expect_true_ablations(Trained& trained) {
  const EffectsReport report = measure_effects(trained.evaluator);
  const Observed observed(trained);
  const std::vector<std::int64_t> partner =
      resampling_pairs(observed.lengths, trained.evaluator.config().train.seed);
  const std::vector<HeadId> heads = trained.heads();
  REQUIRE(report.heads.size() == heads.size());
  for (std::size_t k = 0; k < heads.size(); ++k) {
    const auto layer = static_cast<std::size_t>(heads[k].layer);
    CHECK((report.heads[k].id == heads[k]));
    const std::size_t size = observed.outputs[0][layer].size();
    const MultiHeadAttention& attention = trained.attention(heads[k].layer);
    std::vector<Real> mean(size);
    for (std::size_t j = 0; j < size; ++j) {
      double sum = 0, count = 0;
      const auto position = static_cast<std::int32_t>(
          j / static_cast<std::size_t>(attention.sizes.heads * attention.sizes.d_value));
      for (std::size_t i = 0; i < observed.outputs.size(); ++i) {
        if (position >= observed.lengths[i]) continue;
        sum += double(observed.outputs[i][layer][j]);
        ++count;
      }
      mean[j] = static_cast<Real>(sum / std::max(1.0, count));
    }
    const HeadEffects& head = report.heads[k];
    expect_same_effect(head.zero,
                       plain_effect(trained, heads[k], [&](auto) { return std::vector<Real>(size); }));
    expect_same_effect(head.mean, plain_effect(trained, heads[k], [&](auto) { return mean; }));
    expect_same_effect(head.resample, plain_effect(trained, heads[k], [&](std::size_t i) {
                         return observed.outputs[static_cast<std::size_t>(partner[i])][layer];
                       }));
    CHECK(std::abs(head.zero.loss_change) > 1e-5);  // the effect is not zero
    CHECK(head.zero.loss_change != head.mean.loss_change);
    CHECK(head.mean.loss_change != head.resample.loss_change);
  }
}

std::string text(const EffectsReport& report) {
  const std::vector<AttentionLayer> layers(static_cast<std::size_t>(report.heads.back().id.layer + 1));
  auto json = Json::array({to_json(report.baseline)});
  for (const HeadEffects& h : report.heads) {
    json.push_back(to_json(h));
    json.push_back(to_json(h.importance));
  }
  for (const RemovalStep& s : report.cumulative_ablation) json.push_back(to_json(s, layers));
  return json_text(json);
}

void expect_bits_of_evaluate(Config config, std::int64_t sequences) {
  Trained trained(config, sequences);
  const EvalResult truth = trained.trainer.evaluate(Split::test, sequences);
  const EvalResult result = trained.evaluator.run();
  CHECK(result.loss == truth.loss);
  CHECK(result.accuracy == truth.accuracy);
  CHECK(result.sequence_accuracy == truth.sequence_accuracy);
  CHECK(result.sequences == truth.sequences);
  double loss = 0, labeled = 0;
  for (std::int64_t i = 0; i < sequences; ++i) {
    Plain hooks;
    const Result plain = plain_pass(trained, i, hooks);
    const SequenceResult& sequence = result.per_sequence[static_cast<std::size_t>(i)];
    CHECK_THAT(sequence.loss, WithinRel(plain.loss, 1e-5) || WithinAbs(plain.loss, 1e-5));
    CHECK(static_cast<double>(sequence.labeled) == plain.labeled);
    CHECK(static_cast<double>(sequence.correct) == plain.correct);
    loss += sequence.loss;
    labeled += plain.labeled;
  }
  CHECK_THAT(loss / labeled, WithinRel(truth.loss, 1e-5));
}

}  // namespace

TEST_CASE("the baseline has the bits of evaluate, and every sequence a result of its own", "[inspect]") {
  expect_bits_of_evaluate(small_config(), 60);
  expect_bits_of_evaluate(sequence_config(), 37);
  Config config = rich_config();
  config.data.test = 200;
  expect_bits_of_evaluate(config, 170);  // several chunks, the last one smaller
  config.train.threads = 3;
  expect_bits_of_evaluate(config, 170);
}

TEST_CASE("ablations replace the input of the output projection", "[inspect]") {
  Trained small(small_config());
  expect_true_ablations(small);
  Config config = rich_config();  // sequences of different lengths, a causal mask
  config.data.test = 90;
  Trained rich(config, 90);
  expect_true_ablations(rich);
  for (const Config& other : configs_of_heads(small_config())) {
    Trained trained(other);
    expect_true_ablations(trained);
  }
  Trained whole(sequence_config());
  expect_true_ablations(whole);
}

TEST_CASE("the mean output of an encoder head leaves out sources that end before a position", "[inspect]") {
  Trained trained(writing_config());  // sources of 2 to 4 tokens, and targets that are one longer
  const EffectsReport report = measure_effects(trained.evaluator);
  std::vector<double> sum, count;
  for (std::int64_t i = 0; i < trained.evaluator.sequences(); ++i) {
    Plain hooks;
    const std::int32_t length = plain_pass(trained, i, hooks).batch.source_lengths[0];
    const std::vector<Real>& output = hooks.seen[0];
    sum.resize(output.size());
    count.resize(output.size());
    const std::size_t width = output.size() / 4;
    for (std::size_t j = 0; j < static_cast<std::size_t>(length) * width; ++j) {
      sum[j] += double(output[j]);
      ++count[j];
    }
  }
  REQUIRE(count.front() > count.back());
  REQUIRE(count.back() > 0);
  std::vector<Real> mean(sum.size());
  for (std::size_t j = 0; j < sum.size(); ++j) mean[j] = static_cast<Real>(sum[j] / count[j]);
  for (const std::int64_t head : {0, 1})
    expect_same_effect(report.heads[static_cast<std::size_t>(head)].mean,
                       plain_effect(trained, {0, head}, [&](auto) { return mean; }));
}

TEST_CASE("zero ablation equals zeroing the head's columns of the output projection", "[inspect]") {
  std::vector<Config> configs = configs_of_heads(rich_config());
  std::ranges::copy(configs_of_parts(rich_config()), std::back_inserter(configs));
  configs.insert(configs.end(), {small_config(), rich_config()});
  for (const Config& config : configs) {
    CAPTURE(config.model.heads, config.model.attention.d_value);
    Trained trained(config);
    const EffectsReport report = measure_effects(trained.evaluator);
    const EvalResult before = trained.evaluator.run();
    for (std::size_t k = 0; k < report.heads.size(); ++k) {
      trained.give();
      trained.silence(trained.evaluator.model().parameters(), trained.heads()[k]);
      const EvalResult after = trained.evaluator.run();
      CHECK_THAT(report.heads[k].zero.loss_change, WithinAbs(after.loss - before.loss, 1e-6));
      CHECK_THAT(report.heads[k].zero.accuracy.mean, WithinAbs(after.accuracy - before.accuracy, 1e-12));
    }
  }
}

TEST_CASE("a model without heads is not inspected", "[inspect]") {
  for (const Config& config : {convolution_config(small_config()), recurrent_config(Score::none)}) {
    const ModelSource source{config, {}};
    const auto refusal = StartsWith("a model with model.");
    CHECK_THROWS_WITH(thimble::inspect(source, {}), refusal);
    CHECK_THROWS_WITH(patch(source, 0, 1), refusal);
    CHECK_THROWS_WITH(trace_split(source, Split::test, 1, [](const ForwardTrace&) {}), refusal);
    CHECK_THROWS_WITH(head_log(config), refusal);
  }
}

TEST_CASE("heads without a softmax are ablated and patched, not scored", "[inspect]") {
  Config config = small_config();
  config.model.attention.score = Score::linear;
  const SavedModel saved(config, 30);
  CHECK_THROWS_WITH(
      thimble::inspect(saved.source, {}),
      "scores of heads require attention weights that sum to 1, which model.attention.score linear has not; `thimble ablate` and `thimble patch` measure its heads");
  CHECK_THROWS_WITH(head_log(config), StartsWith("scores of heads require"));
  const std::vector<HeadId> heads{{0, 0}};
  const AblationReport ablated = ablate(saved.source, heads, 60);
  Trained trained(config, 60, 0);
  std::ranges::copy(saved.trainer.model().parameters().values(), trained.parameters().values().begin());
  trained.silence(trained.parameters(), heads[0]);
  trained.give();
  CHECK_THAT(ablated.zero.loss_change, WithinAbs(trained.evaluator.run().loss - ablated.baseline.loss, 1e-6));
  CHECK(patch_pairs(saved.source, {.pairs = 10}).heads.size() == 2);
  CHECK(patch_edges(saved.source, {.pairs = 10}).effects.size() > 2);
}

TEST_CASE("an intervention does not change the model", "[inspect]") {
  Trained trained(rich_config());
  const std::string weights = trained.evaluator.model().parameters().hash();
  const EvalResult before = trained.evaluator.run();
  const std::string first = text(measure_effects(trained.evaluator));
  patching(trained.evaluator, draw_pairs(trained.evaluator, 5));
  const EvalResult after = trained.evaluator.run();
  CHECK(after.loss == before.loss);
  CHECK(after.accuracy == before.accuracy);
  for (std::size_t i = 0; i < before.per_sequence.size(); ++i)
    CHECK(after.per_sequence[i].loss == before.per_sequence[i].loss);
  CHECK(trained.evaluator.model().parameters().hash() == weights);
  CHECK(text(measure_effects(trained.evaluator)) == first);
}

TEST_CASE("effects do not depend on the number of threads", "[inspect]") {
  Config config = rich_config();
  config.data.test = 300;
  std::vector<std::string> reports;
  for (const std::int64_t threads : {1, 2, 5}) {
    config.train.threads = threads;
    Trained trained(config, 300, 5);
    reports.push_back(text(measure_effects(trained.evaluator)));
  }
  CHECK(reports[1] == reports[0]);
  CHECK(reports[2] == reports[0]);
}

TEST_CASE("a head with constant output has only a zero ablation effect", "[inspect]") {
  Trained trained(small_config());
  const MultiHeadAttention& attention = trained.attention(0);
  const std::span<Real> weight = trained.parameters().values(attention.in_proj_weight);
  std::fill(weight.begin() + 2 * 16 * 16 + 8 * 16, weight.end(), Real{0});  // values of head 1: its bias
  trained.give();
  const EffectsReport report = measure_effects(trained.evaluator);
  const HeadEffects& head = effects_of(report, {0, 1});
  CHECK(std::abs(head.zero.loss_change) > 1e-5);
  for (const Effect& effect : {head.mean, head.resample}) {
    CHECK_THAT(effect.loss_change, WithinAbs(0, 1e-6));
    CHECK(effect.accuracy.mean == 0);
  }
}

TEST_CASE("a head whose output is not used has no effect and no importance, and is removed first",
          "[inspect]") {
  Trained trained(rich_config());
  trained.silence(trained.parameters(), {1, 1});
  trained.give();
  const EffectsReport report = measure_effects(trained.evaluator);
  const HeadEffects& head = effects_of(report, {1, 1});
  for (const Effect& effect : {head.zero, head.mean, head.resample}) {
    CHECK(effect.loss_change == 0);
    CHECK(effect.interval.contains(0));
    CHECK(effect.accuracy.mean == 0);
    CHECK(effect.accuracy.interval.contains(0));
  }
  CHECK(head.importance.raw == 0);
  CHECK_THAT(effects_of(report, {1, 0}).importance.normalized, WithinAbs(1, 1e-12));
  const RemovalStep& first = report.cumulative_ablation[1];
  CHECK((first.id == HeadId{1, 1}));
  CHECK(first.loss == report.baseline.loss);
}

TEST_CASE("importance is the mean absolute derivative of the loss by a gate on the head", "[inspect]") {
  const double step = sizeof(Real) == 8 ? 1e-5 : 1e-2;
  Config config = rich_config();
  config.data.test = 90;
  Trained trained(config, 90);
  const EffectsReport report = measure_effects(trained.evaluator);
  std::vector<double> squares(2);
  for (const HeadEffects& head : report.heads) {
    Plain more = change(trained, head.id), less = more;
    more.factor = static_cast<Real>(1 + step);
    less.factor = static_cast<Real>(1 - step);
    double sum = 0;
    for (std::int64_t i = 0; i < 90; ++i) {
      const double slope = plain_pass(trained, i, more).loss - plain_pass(trained, i, less).loss;
      sum += std::abs(slope) / (2 * step);
    }
    CHECK_THAT(head.importance.raw, WithinRel(sum / 90, sizeof(Real) == 8 ? 1e-6 : 1e-2));
    squares[static_cast<std::size_t>(head.id.layer)] += head.importance.raw * head.importance.raw;
  }
  for (const HeadEffects& head : report.heads) {
    const double norm = std::sqrt(squares[static_cast<std::size_t>(head.id.layer)]);
    CHECK_THAT(head.importance.normalized, WithinRel(head.importance.raw / norm, 1e-12));
  }
}

TEST_CASE("heads are removed one after the other, the least important first", "[inspect]") {
  Trained trained(rich_config());
  const EffectsReport report = measure_effects(trained.evaluator);
  REQUIRE(report.cumulative_ablation.size() == 5);
  CHECK(report.cumulative_ablation[0].loss == report.baseline.loss);
  CHECK(report.cumulative_ablation[0].accuracy == report.baseline.accuracy);
  double last = 0;
  for (std::size_t k = 1; k < 5; ++k) {
    const RemovalStep& step = report.cumulative_ablation[k];
    CHECK(step.removed == static_cast<std::int64_t>(k));
    const double importance = effects_of(report, *step.id).importance.normalized;
    CHECK(importance >= last);
    last = importance;
    trained.silence(trained.evaluator.model().parameters(), *step.id);
    const EvalResult now = trained.evaluator.run();
    CHECK_THAT(step.loss, WithinAbs(now.loss, 1e-6));
    CHECK_THAT(step.accuracy, WithinAbs(now.accuracy, 1e-12));
  }
  CHECK(report.cumulative_ablation[4].loss != report.cumulative_ablation[3].loss);
}

TEST_CASE("heads of equal importance are removed in order", "[inspect]") {
  Trained trained(rich_config());
  for (const HeadId& id : trained.heads()) trained.silence(trained.parameters(), id);
  trained.give();
  const EffectsReport report = measure_effects(trained.evaluator);
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(report.heads[k].importance.normalized == 0);
    CHECK((report.cumulative_ablation[k + 1].id == report.heads[k].id));
  }
}

TEST_CASE("sequences without a partner are counted, and have no resample ablation", "[inspect]") {
  Trained trained(small_config(), 1);
  const EffectsReport report = measure_effects(trained.evaluator);
  CHECK(report.unpaired == 1);
  CHECK(std::isnan(effects_of(report, {0, 0}).resample.loss_change));
  CHECK(effects_of(report, {0, 0}).resample.sequences == 0);
  CHECK(effects_of(report, {0, 0}).zero.sequences == 1);
  CHECK(effects_of(report, {0, 0}).zero.loss_change != 0);
  Trained two(small_config(), 2);
  CHECK(measure_effects(two.evaluator).unpaired == 0);
}

TEST_CASE("intervals belong to the differences between sequences", "[inspect]") {
  Trained trained(small_config());
  const EffectsReport report = measure_effects(trained.evaluator);
  const EvalResult before = trained.evaluator.run();
  trained.silence(trained.evaluator.model().parameters(), {0, 1});
  const EvalResult after = trained.evaluator.run();
  std::vector<double> losses, capped, corrects, labeled;
  std::map<std::int32_t, double> counts;
  double all = 0, entropy = 0;
  for (const Chunk& chunk : trained.evaluator.chunks())
    for (const std::int32_t label : chunk.batch.row_labels) {
      ++counts[label];
      ++all;
    }
  for (const auto& [label, count] : counts) entropy -= count / all * std::log(count / all);
  CHECK_THAT(trained.evaluator.loss_cap(), WithinRel(entropy, 1e-12));
  CHECK_THAT(report.scale.bounds.loss_cap, WithinRel(entropy, 1e-12));
  for (std::size_t i = 0; i < 60; ++i) {
    losses.push_back(after.per_sequence[i].loss - before.per_sequence[i].loss);
    capped.push_back(after.per_sequence[i].capped_loss - before.per_sequence[i].capped_loss);
    corrects.push_back(static_cast<double>(after.per_sequence[i].correct - before.per_sequence[i].correct));
    labeled.push_back(static_cast<double>(before.per_sequence[i].labeled));
  }
  const MeanChange loss = mean_change(losses, labeled);
  const double most = report.scale.bounds.most_labels;
  const BoundedMean accuracy(corrects, labeled, most, {-1, 1}),
      capped_loss(capped, labeled, most, {-entropy, entropy});
  const Effect& zero = effects_of(report, {0, 1}).zero;
  CHECK_THAT(zero.interval.low, WithinAbs(loss.interval.low, 1e-6));
  CHECK_THAT(zero.interval.high, WithinAbs(loss.interval.high, 1e-6));
  CHECK_THAT(zero.accuracy.interval.low, WithinAbs(accuracy.interval().low, 1e-9));
  CHECK_THAT(zero.accuracy.interval.high, WithinAbs(accuracy.interval().high, 1e-9));
  CHECK_THAT(zero.accuracy.p, WithinAbs(accuracy.p(), 1e-9));
  CHECK_THAT(zero.capped_loss.interval.low, WithinAbs(capped_loss.interval().low, 1e-5));
  CHECK_THAT(zero.capped_loss.interval.high, WithinAbs(capped_loss.interval().high, 1e-5));
  CHECK_THAT(zero.capped_loss.p, WithinAbs(capped_loss.p(), 1e-4));
  CHECK(zero.interval.contains(zero.loss_change));
  CHECK(zero.interval.low < zero.interval.high);
}

TEST_CASE("intervals count sequences of one input as one draw", "[inspect]") {
  std::vector<SequenceResult> before(6, {.labeled = 1, .correct = 1}), after = before;
  after[0].correct = after[1].correct = 0;
  after[4].loss = 2;
  const Effect effect = effect_between(before, after, {1, 3, {7, 7, 7, 2, 2, 2}});
  const std::vector<double> changes{-2, 0}, losses{0, 2}, labels{3, 3};
  const BoundedMean accuracy(changes, labels, 3, {-1, 1});
  CHECK(effect.accuracy.interval.low == accuracy.interval().low);
  CHECK(effect.accuracy.interval.high == accuracy.interval().high);
  CHECK(effect.interval.high == mean_change(losses, labels).interval.high);
  CHECK(effect.distinct == 2);
}
