// Verdicts on random effects, against the rules of verdict.h and effects.h written a second time.
#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/effects/effect_scale.h"
#include "thimble/inspect/verdict.h"

using namespace thimble;

namespace {

struct Draw {
  std::mt19937 random{7};
  double of(std::initializer_list<double> values) { return values.begin()[random() % values.size()]; }
};

EffectScale draw_scale(Draw& draw) {
  EffectScale scale;
  scale.smallest_accuracy = 1.0 / 64;
  scale.smallest_loss = 1.0 / 16;
  scale.rounding_accuracy = scale.smallest_accuracy * draw.of({0, 0, 0.5, 1, 2});
  scale.rounding_loss = scale.smallest_loss * draw.of({0, 0, 0.5, 1, 2});
  return scale;
}

// Returns an effect whose parts are around the limits of the rules, accuracy and loss apart from each other.
Effect draw_effect(Draw& draw, const EffectScale& scale) {
  const auto change = [&] { return draw.of({-3, -1, -0.75, 0, 0, 0.5, 1, 2, 4}); };
  const auto p = [&] { return draw.of({1e-9, 0.0031, 0.0073, 0.0171, 0.041, 0.33, 1}); };
  const auto around = [&](double x, double unit) {
    return Interval{x - unit * draw.of({0, 0.25, 0.5, 1}), x + unit * draw.of({0, 0.25, 0.5, 1})};
  };
  const double loss = scale.smallest_loss * change(), accuracy = scale.smallest_accuracy * change();
  return {loss, accuracy, around(loss, scale.smallest_loss), around(accuracy, scale.smallest_accuracy),
          p(),  p()};
}

// What an effect costs in one measure.
struct Cost {
  double cost, low, high, p, smallest, rounding;
  bool large() const { return std::abs(cost) >= smallest && std::abs(cost) > rounding; }
  bool small() const { return -smallest < low && high < smallest; }
};

Cost in_accuracy(const Effect& e, const EffectScale& s) {
  return {-e.accuracy_change, -e.accuracy_interval.high, -e.accuracy_interval.low,
          e.accuracy_p,       s.smallest_accuracy,       s.rounding_accuracy};
}

Cost in_loss(const Effect& e, const EffectScale& s) {
  return {e.loss_change, e.interval.low, e.interval.high, e.p, s.smallest_loss, s.rounding_loss};
}

// Returns whether Holm's procedure for these p-values, multiplied by a factor, rejects one of them.
bool is_rejected(const std::vector<double>& all, double p, double factor) {
  return std::ranges::all_of(all, [&](double q) {
    const auto at_least = std::ranges::count_if(all, [&](double x) { return x >= q; });
    return q > p || q * static_cast<double>(at_least) * factor <= kErrorRate;
  });
}

std::vector<double> p_values(const std::vector<Effect>& effects) {
  std::vector<double> p;
  for (const Effect& effect : effects) p.insert(p.end(), {effect.p, effect.accuracy_p});
  return p;
}

}  // namespace

TEST_CASE("verdicts on heads alone follow the rules, for random effects", "[inspect]") {
  Draw draw;
  std::vector<int> counts(7);
  for (int round = 0; round < 4000; ++round) {
    const EffectScale scale = draw_scale(draw);
    std::vector<Effect> effects(1 + draw.random() % 4);
    for (Effect& effect : effects) effect = draw_effect(draw, scale);
    const std::vector<double> all = p_values(effects);
    const std::vector<Verdict> verdicts = judge_heads(effects, scale);
    REQUIRE(verdicts.size() == effects.size());
    for (std::size_t i = 0; i < effects.size(); ++i) {
      const Cost accuracy = in_accuracy(effects[i], scale), loss = in_loss(effects[i], scale);
      Verdict expected = accuracy.small() && loss.small() ? Verdict::unused : Verdict::not_enough;
      for (const Cost& cost : {loss, accuracy})  // accuracy has the last word
        if (cost.large() && is_rejected(all, cost.p, 1))
          expected = cost.cost > 0 ? Verdict::important : Verdict::harmful;
      INFO("round " << round << ", effect " << i);
      REQUIRE(verdict_name(verdicts[i]) == verdict_name(expected));
      ++counts[static_cast<std::size_t>(expected)];
    }
  }
  for (const Verdict v : {Verdict::important, Verdict::harmful, Verdict::unused, Verdict::not_enough})
    CHECK(counts[static_cast<std::size_t>(v)] > 200);
}

TEST_CASE("sets of heads are costly by the rules, for random effects", "[inspect]") {
  Draw draw;
  int costly = 0, by_excess_alone = 0;
  for (int round = 0; round < 10000; ++round) {
    const EffectScale scale = draw_scale(draw);
    const double factor = draw.of({1, 3, 500});
    std::vector<JointEffect> sets(1 + draw.random() % 3);
    std::vector<Effect> excesses;
    for (JointEffect& set : sets) {
      set.effect = draw_effect(draw, scale);
      set.excess = draw_effect(draw, scale);
      set.costly = draw.random() % 2 == 0;
      excesses.push_back(set.excess);
    }
    const std::vector<double> all = p_values(excesses);
    judge_sets(sets, scale, factor);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const auto is_costly = [&](const Cost& excess, const Cost& whole) {
        const bool counts = excess.cost > 0 && excess.large() && is_rejected(all, excess.p, factor);
        by_excess_alone += counts && !(whole.cost > 0 && whole.large());
        return counts && whole.cost > 0 && whole.large();
      };
      const bool accuracy = is_costly(in_accuracy(sets[i].excess, scale), in_accuracy(sets[i].effect, scale)),
                 loss = is_costly(in_loss(sets[i].excess, scale), in_loss(sets[i].effect, scale));
      INFO("round " << round << ", set " << i);
      REQUIRE(sets[i].costly == (accuracy || loss));
      costly += accuracy || loss;
    }
  }
  CHECK(costly > 500);
  CHECK(by_excess_alone > 500);
}

TEST_CASE("the cost of an ablation is the larger one of both measures, in their smallest effects",
          "[inspect]") {
  Draw draw;
  for (int round = 0; round < 200; ++round) {
    const EffectScale scale = draw_scale(draw);
    const Effect e = draw_effect(draw, scale);
    const double cost = cost_in_smallest(e.loss_change, e.accuracy_change, scale);
    CHECK(cost == std::max(e.loss_change * 16, -e.accuracy_change * 64));
  }
}

TEST_CASE("a head of several groups is a backup in the first of them", "[inspect]") {
  std::vector<HeadEffects> heads(4);
  for (std::int64_t h = 0; h < 4; ++h) heads[static_cast<std::size_t>(h)].id = {0, h};
  EffectScale scale;
  scale.smallest_accuracy = scale.smallest_loss = 0.01;
  JointReport joint;
  joint.groups.resize(2);
  joint.groups[0].heads = {{0, 1}, {0, 2}};
  joint.groups[0].effect.loss_change = 0.5;
  joint.groups[1].heads = {{0, 0}, {0, 1}, {0, 2}};
  joint.groups[1].effect.loss_change = 0.75;
  AttentionLayer layer;
  layer.heads = 4;
  const std::vector<HeadVerdict> verdicts = judge(heads, scale, joint, {&layer, 1});
  REQUIRE(verdicts.size() == 4);
  CHECK((verdicts[0].group == std::vector<HeadId>{{0, 1}, {0, 2}}));
  CHECK(verdicts[0].group_effect.loss_change == 0.75);
  CHECK((verdicts[1].group == std::vector<HeadId>{{0, 2}}));
  CHECK(verdicts[1].group_effect.loss_change == 0.5);
  for (const std::size_t h : {0, 1, 2}) CHECK(verdicts[h].verdict == Verdict::backup);
  CHECK(verdicts[3].verdict == Verdict::unused);
  CHECK(verdicts[3].group.empty());
}

TEST_CASE("a model is at chance by the rules, for random results", "[inspect]") {
  Draw draw;
  int at_chance = 0;
  for (int round = 0; round < 4000; ++round) {
    EffectScale scale = draw_scale(draw);
    scale.above_chance = draw_effect(draw, scale);
    // Untrained models are 4 deviations away from 0.
    scale.untrained_accuracy.mean = -1;
    scale.untrained_loss.mean = 2;
    scale.untrained_accuracy.sd = 0.25;
    scale.untrained_loss.sd = 0.5;
    EvalResult baseline;
    baseline.accuracy = draw.of({-0.5, 0, 0.125, 1});
    baseline.loss = draw.of({0.5, 0, -0.125, -1});
    const Effect& above = scale.above_chance;
    const bool right = above.accuracy_change >= scale.smallest_accuracy && above.accuracy_interval.low > 0 &&
                       baseline.accuracy > 0;
    const bool sure =
        -above.loss_change >= scale.smallest_loss && above.interval.high < 0 && baseline.loss < 0;
    REQUIRE(is_at_chance(scale, baseline) == !(right || sure));
    at_chance += !(right || sure);
  }
  CHECK(at_chance > 500);
  CHECK(at_chance < 3500);
}
