#include "thimble/inspect/verdict.h"

#include <algorithm>
#include <cmath>

#include "inspect/effects/head_names.h"
#include "thimble/engine/error.h"

namespace thimble {

namespace {

// An effect in one measure, with its sign such that a positive one is a cost.
struct Cost {
  double change = 0;
  Interval interval;
  double p = 1, smallest = 0, rounding = 0;

  // Returns whether a change is at least the smallest effect and more than the rounding error.
  bool is_large(double x) const { return x >= smallest && x > rounding; }
  bool counts() const { return p <= kErrorRate && is_large(std::abs(change)); }
  // Returns whether the interval excludes costs and gains of the smallest effect; false where it is unknown.
  bool is_small() const { return interval.low > -smallest && interval.high < smallest; }
};

Cost accuracy_cost(const Effect& e, const EffectScale& scale, double p) {
  return {-e.accuracy_change,
          {-e.accuracy_interval.high, -e.accuracy_interval.low},
          p,
          scale.smallest_accuracy,
          scale.rounding_accuracy};
}

Cost loss_cost(const Effect& e, const EffectScale& scale, double p) {
  return {e.loss_change, e.interval, p, scale.smallest_loss, scale.rounding_loss};
}

// Returns the p-values of accuracy and loss of each effect, corrected for their number.
std::vector<double> corrected(const std::vector<const Effect*>& effects) {
  std::vector<double> p;
  for (const Effect* effect : effects) p.insert(p.end(), {effect->accuracy_p, effect->p});
  return holm(p);
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::important:
      return "important";
    case Verdict::harmful:
      return "harmful";
    case Verdict::backup:
      return "backup";
    case Verdict::redundant:
      return "redundant";
    case Verdict::unused:
      return "unused";
    case Verdict::at_chance:
      return "at_chance";
    case Verdict::not_enough:
      return "not_enough";
  }
  throw Error("verdict: unknown verdict");
}

double cost_in_smallest(double loss_change, double accuracy_change, const EffectScale& scale) {
  return std::max(-accuracy_change / scale.smallest_accuracy, loss_change / scale.smallest_loss);
}

std::vector<Verdict> judge_heads(std::span<const Effect> zero, const EffectScale& scale) {
  if (scale.at_chance) return std::vector<Verdict>(zero.size(), Verdict::at_chance);
  std::vector<const Effect*> effects;
  for (const Effect& effect : zero) effects.push_back(&effect);
  const std::vector<double> p = corrected(effects);
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < zero.size(); ++i) {
    const Cost accuracy = accuracy_cost(zero[i], scale, p[2 * i]),
               loss = loss_cost(zero[i], scale, p[2 * i + 1]);
    if (accuracy.counts() || loss.counts())
      verdicts.push_back((accuracy.counts() ? accuracy : loss).change > 0 ? Verdict::important
                                                                          : Verdict::harmful);
    else
      verdicts.push_back(accuracy.is_small() && loss.is_small() ? Verdict::unused : Verdict::not_enough);
  }
  return verdicts;
}

void judge_sets(std::span<JointEffect> sets, const EffectScale& scale, double corrected_for) {
  std::vector<const Effect*> effects;
  for (const JointEffect& set : sets) effects.push_back(&set.excess);
  const std::vector<double> p = corrected(effects);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const Cost accuracy = accuracy_cost(sets[i].excess, scale, corrected_for * p[2 * i]),
               loss = loss_cost(sets[i].excess, scale, corrected_for * p[2 * i + 1]);
    const Effect& all = sets[i].effect;
    sets[i].costly = (accuracy.counts() && accuracy.change > 0 && accuracy.is_large(-all.accuracy_change)) ||
                     (loss.counts() && loss.change > 0 && loss.is_large(all.loss_change));
  }
}

std::vector<HeadVerdict> judge(std::span<const HeadEffects> heads, const EffectScale& scale,
                               const JointReport& joint, std::span<const AttentionLayer> layers) {
  std::vector<Effect> zero;
  for (const HeadEffects& head : heads) zero.push_back(head.zero);
  const std::vector<Verdict> alone = judge_heads(zero, scale);
  std::vector<HeadVerdict> verdicts;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    HeadVerdict& verdict = verdicts.emplace_back();
    verdict.verdict = alone[i];
    const auto group = std::ranges::find_if(joint.groups, [&](const JointEffect& set) {
      return std::ranges::find(set.heads, heads[i].id) != set.heads.end();
    });
    if (group == joint.groups.end()) continue;
    verdict.verdict = Verdict::backup;
    verdict.group_effect = group->effect;
    for (const HeadId& id : group->heads) {
      if (id == heads[i].id) continue;
      verdict.group.push_back(id);
      verdict.names.push_back(head_name(layers, id));
    }
  }
  return verdicts;
}

Json to_json(const JointEffect& set, std::span<const AttentionLayer> layers) {
  Json json = to_json(set.effect);
  json["heads"] = Json::array();
  json["names"] = Json::array();
  for (const HeadId& id : set.heads) {
    json["heads"].push_back(head_json(layers, id));
    json["names"].push_back(head_name(layers, id));
  }
  json["excess"] = to_json(set.excess);
  json["costly"] = set.costly;
  return json;
}

}  // namespace thimble
