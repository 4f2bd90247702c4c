#include "thimble/inspect/verdict.h"

#include <algorithm>
#include <cmath>

#include "engine/core/portable_math.h"
#include "inspect/effects/head_names.h"

namespace thimble {

namespace {

// A change in one measure, with its sign such that a positive one is a cost.
struct Cost {
  double mean = 0;
  Interval interval;
  double p = 1, smallest = 0, rounding = 0, most = 1;  // most: that an answer can cost

  bool is_significant() const { return p <= kErrorRate && std::abs(mean) > rounding; }
  bool is_of_interest() const {
    const double nearest = mean > 0 ? interval.low : -interval.high;
    return is_significant() && nearest > smallest && nearest > rounding;
  }
  bool is_small() const { return interval.low > -smallest && interval.high < smallest; }

  // Returns about how many sequences would make the interval small if the mean is true. Its end further from 0 is away from
  // the mean by bound / n, as where nothing changes, and by a rest that falls with the root of n.
  std::optional<double> needed(const Effect& effect, double most_labels) const {
    if (is_small()) return 0;
    const double room = smallest - std::abs(mean);
    if (!(room > 0)) return std::nullopt;
    const double n = static_cast<double>(effect.sequences),
                 away = std::max(std::abs(interval.low), std::abs(interval.high)) - std::abs(mean),
                 bound = -portable::log(0.025) * most * most_labels * n /
                         std::max(1.0, static_cast<double>(effect.labels)),
                 rest = std::max(0.0, away - bound / n) * std::sqrt(n),
                 root = (std::sqrt(rest * rest + 4 * bound * room) - rest) / (2 * bound);
    return 1 / (root * root);
  }
};

Cost accuracy_cost(const Effect& e, const EffectScale& scale, double p) {
  const Interval& change = e.accuracy.interval;
  return {-e.accuracy.mean,        {-change.high, -change.low}, p,
          scale.smallest_accuracy, scale.rounding_accuracy,     1};
}

Cost loss_cost(const Effect& e, const EffectScale& scale, double p) {
  return {e.capped_loss.mean,  e.capped_loss.interval, p,
          scale.smallest_loss, scale.rounding_loss,    scale.bounds.loss_cap};
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"important", "harmful", "minor",     "backup",
                                         "redundant", "unused",  "at_chance", "not_enough"};
  return kNames[static_cast<std::size_t>(verdict)];
}

double cost_in_smallest(double loss_change, double accuracy_change, const EffectScale& scale) {
  return std::max(-accuracy_change / scale.smallest_accuracy, loss_change / scale.smallest_loss);
}

std::vector<HeadVerdict> judge_heads(std::span<const Effect> zero, const EffectScale& scale) {
  std::vector<HeadVerdict> verdicts(zero.size(), {.verdict = Verdict::at_chance});
  if (scale.at_chance.value_or(false)) return verdicts;
  std::vector<double> p;
  for (const Effect& effect : zero) p.insert(p.end(), {effect.accuracy.p, effect.capped_loss.p});
  p = holm(p);
  for (std::size_t i = 0; i < zero.size(); ++i) {
    const Cost accuracy = accuracy_cost(zero[i], scale, p[2 * i]),
               loss = loss_cost(zero[i], scale, p[2 * i + 1]);
    HeadVerdict& out = verdicts[i];
    out.loss_cap = scale.bounds.loss_cap;
    out.keeps_answers = accuracy.is_small();
    if (accuracy.is_small() && loss.is_small()) {
      out.verdict = Verdict::unused;
    } else if (accuracy.is_of_interest() || loss.is_of_interest()) {
      out.in_loss = !accuracy.is_of_interest();
      out.verdict = (out.in_loss ? loss : accuracy).mean > 0 ? Verdict::important : Verdict::harmful;
    } else if (accuracy.is_significant() || loss.is_significant()) {
      out.in_loss = !accuracy.is_significant();
      out.verdict = Verdict::minor;
    } else {
      out.verdict = Verdict::not_enough;
      const auto of_accuracy = accuracy.needed(zero[i], scale.bounds.most_labels),
                 of_loss = loss.needed(zero[i], scale.bounds.most_labels);
      if (of_accuracy && of_loss) out.needed = std::max(*of_accuracy, *of_loss);
    }
  }
  return verdicts;
}

std::vector<Shown> judge_worth(std::span<const BoundedChanges> changes, const EffectScale& scale,
                               double corrected_for) {
  std::vector<double> p;
  for (const BoundedChanges& one : changes) p.insert(p.end(), {one.accuracy.p(), one.capped_loss.p()});
  p = holm(p);
  const double least_accuracy = std::max(scale.smallest_accuracy, scale.rounding_accuracy),
               least_loss = std::max(scale.smallest_loss, scale.rounding_loss);
  const auto is_significant = [&](double corrected) { return corrected * corrected_for <= kErrorRate; };
  std::vector<Shown> shown;
  for (std::size_t i = 0; i < changes.size(); ++i)
    if (is_significant(p[2 * i]) && changes[i].accuracy.is_below(-least_accuracy) &&
        !changes[i].capped_loss.is_below(-least_loss))
      shown.push_back(Shown::in_accuracy);
    else if (is_significant(p[2 * i + 1]) && changes[i].capped_loss.is_above(least_loss) &&
             !changes[i].accuracy.is_above(least_accuracy))
      shown.push_back(Shown::in_loss);
    else
      shown.push_back(Shown::no);
  return shown;
}

bool is_worthless(const BoundedChanges& changes, const EffectScale& scale) {
  return changes.accuracy.is_above(-scale.smallest_accuracy) &&
         changes.capped_loss.is_below(scale.smallest_loss);
}

std::vector<HeadVerdict> judge(std::span<const HeadEffects> heads, const EffectScale& scale,
                               const JointReport& joint, std::span<const AttentionLayer> layers) {
  std::vector<Effect> zero;
  for (const HeadEffects& head : heads) zero.push_back(head.zero);
  std::vector<HeadVerdict> verdicts = judge_heads(zero, scale);
  const auto has = [](const std::vector<HeadId>& set, HeadId id) {
    return std::ranges::find(set, id) != set.end();
  };
  for (std::size_t i = 0; i < heads.size(); ++i) {
    HeadVerdict& verdict = verdicts[i];
    const HeadId head = heads[i].id;
    verdict.in_pairs = has(joint.worthless, head);
    for (const JointEffect& pair : joint.cancelling)
      if (has(pair.heads, head))
        verdict.names.push_back(head_name(layers, pair.heads[pair.heads[0] == head ? 1 : 0]));
    const Backup* backup = nullptr;  // with the heads without which it is worth most
    const JointEffect* group = nullptr;
    const auto worth = [&](const Backup& one) {
      return cost_in_smallest(one.worth.capped_loss.mean, one.worth.accuracy.mean, scale);
    };
    for (const JointEffect& set : joint.groups) {
      const auto found = std::ranges::find(set.backups, head, &Backup::head);
      if (found == set.backups.end() || (backup != nullptr && worth(*found) <= worth(*backup))) continue;
      backup = &*found;
      group = &set;
    }
    if (backup == nullptr) continue;
    verdict.verdict = Verdict::backup;
    verdict.in_loss = backup->in_loss;
    verdict.worth = backup->worth;
    for (const HeadId& id : group->heads) {
      if (id == head) continue;
      verdict.group.push_back(id);
      verdict.names.push_back(head_name(layers, id));
    }
  }
  return verdicts;
}

namespace {

void add_heads(Json& json, std::span<const HeadId> heads, std::span<const AttentionLayer> layers) {
  json["heads"] = json["names"] = Json::array();
  for (const HeadId& id : heads) {
    json["heads"].push_back(head_json(layers, id));
    json["names"].push_back(head_name(layers, id));
  }
}

}  // namespace

Json to_json(const PairEffect& pair, std::span<const AttentionLayer> layers) {
  Json json{{"loss_change", pair.loss_change},
            {"accuracy_change", pair.accuracy_change},
            {"capped_loss_change", pair.capped_loss_change},
            {"worth", {{"accuracy", pair.worth_accuracy}, {"capped_loss", pair.worth_loss}}}};
  add_heads(json, pair.heads, layers);
  return json;
}

Json to_json(const JointEffect& set, std::span<const AttentionLayer> layers) {
  Json json = to_json(set.effect);
  add_heads(json, set.heads, layers);
  json["backups"] = Json::array();
  for (const Backup& backup : set.backups)
    json["backups"].push_back({{"name", head_name(layers, backup.head)}, {"worth", to_json(backup.worth)}});
  return json;
}

}  // namespace thimble
