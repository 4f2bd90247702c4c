// Verdicts on random effects, against the rules of verdict.h and effects.h written a second time.
#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/effects/effect_scale.h"
#include "inspect/made_effect.h"
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
  return made_effect(loss, accuracy, around(loss, scale.smallest_loss),
                     around(accuracy, scale.smallest_accuracy), p(), p());
}

// What an effect costs in one measure.
struct Cost {
  double cost, low, high, p, smallest, rounding;
  bool beyond_rounding() const { return cost > rounding || cost < -rounding; }
  bool large() const {
    return cost > 0 ? low > smallest && low > rounding && beyond_rounding()
                    : high < -smallest && high < -rounding && beyond_rounding();
  }
  bool small() const { return -smallest < low && high < smallest; }
};

Cost in_accuracy(const Effect& e, const EffectScale& s) {
  return {-e.accuracy.mean, -e.accuracy.interval.high, -e.accuracy.interval.low,
          e.accuracy.p,     s.smallest_accuracy,       s.rounding_accuracy};
}

Cost in_loss(const Effect& e, const EffectScale& s) {
  return {e.capped_loss.mean,
          e.capped_loss.interval.low,
          e.capped_loss.interval.high,
          e.capped_loss.p,
          s.smallest_loss,
          s.rounding_loss};
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
  for (const Effect& effect : effects) p.insert(p.end(), {effect.capped_loss.p, effect.accuracy.p});
  return p;
}

}  // namespace

TEST_CASE("verdicts on heads alone follow the rules, for random effects", "[inspect]") {
  Draw draw;
  std::vector<int> counts(8);
  for (int round = 0; round < 4000; ++round) {
    EffectScale scale = draw_scale(draw);
    std::vector<Effect> effects(1 + draw.random() % 4);
    for (Effect& effect : effects) effect = draw_effect(draw, scale);
    const std::vector<double> all = p_values(effects);
    const std::vector<HeadVerdict> verdicts = judge_heads(effects, scale);
    REQUIRE(verdicts.size() == effects.size());
    for (std::size_t i = 0; i < effects.size(); ++i) {
      const Cost accuracy = in_accuracy(effects[i], scale), loss = in_loss(effects[i], scale);
      const bool small = accuracy.small() && loss.small();
      Verdict expected = small ? Verdict::unused : Verdict::not_enough;
      bool in_loss = false;
      // Accuracy has the last word, an effect of interest before a minor one.
      for (const bool of_interest : {false, true})
        for (const Cost& cost : {loss, accuracy})
          if (!small && cost.beyond_rounding() && is_rejected(all, cost.p, 1) &&
              (cost.large() || !of_interest)) {
            expected = !of_interest ? Verdict::minor : cost.cost > 0 ? Verdict::important : Verdict::harmful;
            in_loss = cost.smallest == scale.smallest_loss;
          }
      INFO("round " << round << ", effect " << i);
      REQUIRE(verdict_name(verdicts[i].verdict) == verdict_name(expected));
      if (expected != Verdict::unused && expected != Verdict::not_enough)
        REQUIRE(verdicts[i].in_loss == in_loss);
      ++counts[static_cast<std::size_t>(expected)];
    }
    scale.at_chance = true;
    for (const HeadVerdict& none : judge_heads(effects, scale)) REQUIRE(none.verdict == Verdict::at_chance);
  }
  for (const Verdict v :
       {Verdict::important, Verdict::harmful, Verdict::minor, Verdict::unused, Verdict::not_enough})
    CHECK(counts[static_cast<std::size_t>(v)] > 200);
}

TEST_CASE("what a head is worth is shown by the rules, for random changes", "[inspect]") {
  Draw draw;
  std::vector<int> counts(3);
  for (int round = 0; round < 500; ++round) {
    EffectScale scale = draw_scale(draw);
    scale.bounds = {2, 1};
    const double factor = draw.of({1, 3, 10, 20, 500});
    std::vector<BoundedChanges> worth;
    for (std::size_t k = 1 + draw.random() % 3; k > 0; --k) {
      std::vector<SequenceResult> before(200), after(200);
      for (std::size_t i = 0; i < before.size(); ++i) {
        before[i].labeled = after[i].labeled = 1;
        before[i].correct = after[i].correct = 1;
      }
      const auto lost = static_cast<std::size_t>(draw.of({0, 4, 8, 10, 11, 12, 60}));
      const double loss = draw.of({0, 0.1, 0.5, 0.7, 2});
      for (std::size_t i = 0; i < lost; ++i) after[i].correct = 0;
      for (std::size_t i = 0; i < 40; ++i) after[i].capped_loss = loss;
      worth.push_back(bounded_changes(before, after, scale.bounds));
      CHECK_THAT(worth.back().accuracy.mean(), WithinAbs(-static_cast<double>(lost) / 200, 1e-12));
      CHECK_THAT(worth.back().capped_loss.mean(), WithinAbs(loss / 5, 1e-12));
    }
    std::vector<double> p;
    for (const BoundedChanges& one : worth) p.insert(p.end(), {one.accuracy.p(), one.capped_loss.p()});
    const std::vector<Shown> shown = judge_worth(worth, scale, factor);
    for (std::size_t i = 0; i < worth.size(); ++i) {
      const auto counts_as = [&](double p_of, double low, double smallest, double rounding) {
        return is_rejected(p, p_of, factor) && low > smallest && low > rounding;
      };
      const BoundedMean &accuracy = worth[i].accuracy, &loss = worth[i].capped_loss;
      const bool right = counts_as(accuracy.p(), -accuracy.interval().high, scale.smallest_accuracy,
                                   scale.rounding_accuracy),
                 sure = counts_as(loss.p(), loss.interval().low, scale.smallest_loss, scale.rounding_loss);
      REQUIRE(shown[i] == (right ? Shown::in_accuracy : sure ? Shown::in_loss : Shown::no));
      ++counts[static_cast<std::size_t>(shown[i])];
      const bool worthless =
          -accuracy.interval().low < scale.smallest_accuracy && loss.interval().high < scale.smallest_loss;
      REQUIRE(is_worthless(worth[i], scale) == worthless);
    }
  }
  CAPTURE(counts);
  for (const int count : counts) CHECK(count > 50);
}

TEST_CASE("a head is worth nothing in one measure where it harms the other", "[inspect]") {
  std::vector<SequenceResult> before(200, {.labeled = 1, .correct = 1, .capped_loss = 1}), after = before;
  for (std::size_t i = 0; i < 60; ++i) after[i].correct = 0;
  const EffectScale scale{.smallest_accuracy = 0.01, .smallest_loss = 0.01, .bounds = {2, 1}};
  const auto shown = [&] {
    return judge_worth({{bounded_changes(before, after, scale.bounds)}}, scale, 1)[0];
  };
  CHECK(shown() == Shown::in_accuracy);
  for (std::size_t i = 0; i < 100; ++i) after[i].capped_loss = 0;
  CHECK(shown() == Shown::no);
  std::swap(before, after);
  CHECK(shown() == Shown::no);
}

TEST_CASE("the cost of an ablation is the larger one of both measures, in their smallest effects",
          "[inspect]") {
  Draw draw;
  for (int round = 0; round < 200; ++round) {
    const EffectScale scale = draw_scale(draw);
    const Effect e = draw_effect(draw, scale);
    const double cost = cost_in_smallest(e.loss_change, e.accuracy.mean, scale);
    CHECK(cost == std::max(e.loss_change * 16, -e.accuracy.mean * 64));
  }
}

TEST_CASE("a head of several groups is a backup in the one where it is worth most", "[inspect]") {
  std::vector<HeadEffects> heads(4);
  for (std::int64_t h = 0; h < 4; ++h) heads[static_cast<std::size_t>(h)].id = {0, h};
  EffectScale scale;
  scale.smallest_accuracy = scale.smallest_loss = 0.01;
  JointReport joint;
  joint.groups.resize(2);
  joint.groups[0].heads = {{0, 1}, {0, 2}};
  joint.groups[1].heads = {{0, 0}, {0, 1}, {0, 2}};
  for (JointEffect& group : joint.groups)
    for (const HeadId& head : group.heads) group.backups.push_back({head, {}});
  joint.groups[0].backups[0].worth.capped_loss.mean = 0.5;
  joint.groups[1].backups[0].worth.capped_loss.mean = 0.75;
  joint.groups[0].backups[1].worth.accuracy.mean = -0.1;
  joint.groups[1].backups[2].worth.accuracy.mean = -0.2;
  AttentionLayer layer;
  layer.heads = 4;
  const std::vector<HeadVerdict> verdicts = judge(heads, scale, joint, {&layer, 1});
  REQUIRE(verdicts.size() == 4);
  CHECK((verdicts[0].group == std::vector<HeadId>{{0, 1}, {0, 2}}));
  CHECK(verdicts[0].worth.capped_loss.mean == 0.75);
  CHECK((verdicts[1].group == std::vector<HeadId>{{0, 2}}));
  CHECK(verdicts[1].worth.capped_loss.mean == 0.5);
  CHECK((verdicts[2].group == std::vector<HeadId>{{0, 0}, {0, 1}}));
  for (const std::size_t h : {0, 1, 2}) CHECK(verdicts[h].verdict == Verdict::backup);
  CHECK(verdicts[3].verdict == Verdict::unused);
  CHECK(verdicts[3].group.empty());
}

TEST_CASE("a model is at chance by the rules, for random results", "[inspect]") {
  Draw draw;
  int counts[3] = {};
  for (int round = 0; round < 4000; ++round) {
    EffectScale scale = draw_scale(draw);
    scale.above_chance = draw_effect(draw, scale);
    // Untrained models are 4 deviations away from 0.
    scale.untrained_accuracy.mean = -1;
    scale.untrained_loss.mean = 2;
    scale.untrained_accuracy.sd = 0.25;
    scale.untrained_loss.sd = 0.5;
    EvalResult baseline;
    baseline.labels = 1;
    baseline.accuracy = draw.of({-0.5, 0, 0.125, 1});
    baseline.loss = draw.of({0.5, 0, -0.125, -1});
    const BoundedChange &right = scale.above_chance.accuracy, &loss = scale.above_chance.capped_loss;
    const bool is_right =
                   right.mean >= scale.smallest_accuracy && right.interval.low > 0 && baseline.accuracy > 0,
               is_sure = -loss.mean >= scale.smallest_loss && loss.interval.high < 0 && baseline.loss < 0,
               is_small =
                   right.interval.high < scale.smallest_accuracy && -loss.interval.low < scale.smallest_loss,
               is_untrained = baseline.accuracy <= 0 && baseline.loss >= 0;
    std::optional<bool> expected;
    if (is_right || is_sure)
      expected = false;
    else if (is_untrained || is_small)
      expected = true;
    REQUIRE(is_at_chance(scale, baseline) == expected);
    baseline.labels = 0;
    REQUIRE(is_at_chance(scale, baseline) == std::nullopt);
    ++counts[expected ? *expected : 2];
  }
  for (const int count : counts) CHECK(count > 200);
}
