#include "thimble/inspect/effects.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "inspect/effects/head_names.h"
#include "thimble/train/json.h"

namespace thimble {

double loss_of(const EvalResult& result, double SequenceResult::*of) {
  double sum = 0, labels = 0;
  for (const SequenceResult& sequence : result.per_sequence) {
    sum += sequence.*of;
    labels += static_cast<double>(sequence.labeled);
  }
  return sum / std::max(1.0, labels);
}

namespace {

// Returns the sums over the sequences of each draw.
std::vector<double> by_draw(const std::vector<double>& values, const AnswerBounds& bounds) {
  if (bounds.draws.empty()) return values;
  std::vector<double> sums;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || bounds.draws[i] != bounds.draws[i - 1]) sums.push_back(0);
    sums.back() += values[i];
  }
  return sums;
}

}  // namespace

BoundedChanges bounded_changes(std::span<const SequenceResult> before, std::span<const SequenceResult> after,
                               const AnswerBounds& bounds) {
  std::vector<double> corrects, capped, labels;
  for (std::size_t i = 0; i < before.size(); ++i) {
    corrects.push_back(static_cast<double>(after[i].correct - before[i].correct));
    capped.push_back(after[i].capped_loss - before[i].capped_loss);
    labels.push_back(static_cast<double>(before[i].labeled));
  }
  labels = by_draw(labels, bounds);
  return {{by_draw(corrects, bounds), labels, bounds.most_labels, {-1, 1}},
          {by_draw(capped, bounds), labels, bounds.most_labels, {-bounds.loss_cap, bounds.loss_cap}}};
}

Effect effect_between(std::span<const SequenceResult> before, std::span<const SequenceResult> after,
                      const AnswerBounds& bounds) {
  std::vector<double> losses, labels;
  std::int64_t knowable = 0, known = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    knowable += before[i].knowable;
    known += after[i].knowable_correct - before[i].knowable_correct;
    losses.push_back(after[i].loss - before[i].loss);
    labels.push_back(static_cast<double>(before[i].labeled));
  }
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> of_draws = by_draw(labels, bounds);
  const double all = std::accumulate(labels.begin(), labels.end(), 0.0);
  const MeanChange loss =
      all > 0 ? mean_change(by_draw(losses, bounds), of_draws) : MeanChange{kUnknown, {kUnknown, kUnknown}};
  const auto [accuracy, capped] = bounded_changes(before, after, bounds);
  return {loss.mean,
          loss.interval,
          {accuracy.mean(), accuracy.interval(), accuracy.p()},
          {capped.mean(), capped.interval(), capped.p()},
          std::ssize(before),
          std::llround(all),
          std::ssize(of_draws),
          knowable > 0 ? static_cast<double>(known) / static_cast<double>(knowable) : 0,
          knowable};
}

Json to_json(const EffectScale& scale) {
  const auto above_0 = [](double smallest) { return smallest > 0 ? Json(smallest) : Json(); };
  const auto mean_and_sd = [](const Spread& of) { return Json{{"mean", of.mean}, {"sd", or_null(of.sd)}}; };
  return {{"chance", {{"accuracy", scale.chance_accuracy}, {"loss", scale.chance_loss}}},
          {"at_chance", or_null(scale.at_chance)},
          {"above_chance", to_json(scale.above_chance)},
          {"untrained",
           {{"models", scale.untrained_accuracy.count},
            {"accuracy", mean_and_sd(scale.untrained_accuracy)},
            {"loss", mean_and_sd(scale.untrained_loss)}}},
          {"lowest_loss", or_null(scale.lowest_loss)},
          {"smallest_effect",
           {{"accuracy", above_0(scale.smallest_accuracy)}, {"loss", above_0(scale.smallest_loss)}}},
          {"rounding", {{"accuracy", scale.rounding_accuracy}, {"loss", scale.rounding_loss}}}};
}

Json to_json(const Effect& effect) {
  const auto tested = [&](double p) { return effect.labels > 0 ? Json(p) : Json(); };
  return {{"loss_change", effect.loss_change},
          {"accuracy_change", effect.accuracy.mean},
          {"interval", to_json(effect.interval)},
          {"accuracy_interval", to_json(effect.accuracy.interval)},
          {"accuracy_p", tested(effect.accuracy.p)},
          {"capped_loss",
           {{"change", effect.capped_loss.mean},
            {"interval", to_json(effect.capped_loss.interval)},
            {"p", tested(effect.capped_loss.p)}}},
          {"sequences", effect.sequences},
          {"distinct", effect.distinct},
          {"labels", effect.labels}};
}

Json to_json(const HeadEffects& head) {
  return {{"zero", to_json(head.zero)}, {"mean", to_json(head.mean)}, {"resample", to_json(head.resample)}};
}

Json to_json(const Importance& importance) {
  return {{"raw", importance.raw}, {"normalized", importance.normalized}};
}

Json to_json(const RemovalStep& step, std::span<const AttentionLayer> layers) {
  const Json none = {{"layer", nullptr}, {"head", nullptr}, {"name", nullptr}};
  Json json{{"removed", step.removed}};
  json.update(step.id ? head_json(layers, *step.id) : none);
  json.update({{"loss", step.loss}, {"accuracy", step.accuracy}});
  return json;
}

Json to_json(const AblationReport& report) {
  return {{"heads", report.names},
          {"baseline",
           {{"loss", report.baseline.loss},
            {"accuracy", report.baseline.accuracy},
            {"sequences", report.baseline.sequences},
            {"labels", report.baseline.labels}}},
          {"zero", to_json(report.zero)},
          {"mean", to_json(report.mean)},
          {"resample", to_json(report.resample)},
          {"unpaired", report.unpaired}};
}

}  // namespace thimble
