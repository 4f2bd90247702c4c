// Effects of sets of heads, against all sets of heads whose output weights are zero.
#include "inspect/effects/joint_effects.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>

#include "catch.h"
#include "inspect/hand_made.h"
#include "inspect/interventions.h"

using namespace thimble;

namespace {

// Runs the model without the output of some heads.
EvalResult without(Trained& trained, const std::vector<HeadId>& heads) {
  trained.give();
  for (const HeadId& id : heads) trained.silence(trained.evaluator.model().parameters(), id);
  EvalResult result = trained.evaluator.run();
  trained.give();
  return result;
}

// A model of one layer that reverses 8 tokens, each of whose heads adds `weights[h]` of the mirrored token to the
// answer.
struct Mirrors : Trained {
  explicit Mirrors(const std::vector<double>& weights, double confidence = 10)
      : Trained(
            [&] {
              Config config = hand_made::mirror().config.values();
              config.model.heads = std::ssize(weights);
              config.data.test = 100;
              return config;
            }(),
            100, 0) {
    std::ranges::fill(parameters().values(), Real{0});
    auto& model = dynamic_cast<Transformer&>(trainer.model());
    hand_made::Maker make(model);
    make.start_layer(0, 2);
    make.set_confidence(confidence);
    for (std::size_t h = 0; h < weights.size(); ++h) {
      make.use_head(static_cast<std::int64_t>(h));
      for (std::int64_t p = 0; p < make.time(); ++p)
        make.match(p, make.position(make.time() - 1 - p), make.position(p), hand_made::kSharp);
      make.copy_token_to_answer(weights[h]);
    }
    give();
  }
};

using Sets = std::vector<std::vector<HeadId>>;

// Returns the minimal costly sets of heads that cost nothing alone, in which every head, if it stays, is worth the
// smallest effect; or minimal costly sets, whatever their heads are worth.
Sets groups_of(Trained& trained, const EffectsReport& effects, bool restored = true) {
  std::vector<Effect> zero;
  for (const HeadEffects& head : effects.heads) zero.push_back(head.zero);
  const std::vector<Verdict> verdicts = judge_heads(zero, effects.scale);
  std::vector<HeadId> costless;
  for (std::size_t h = 0; h < zero.size(); ++h)
    if (verdicts[h] == Verdict::unused || verdicts[h] == Verdict::not_enough)
      costless.push_back(effects.heads[h].id);

  const std::uint32_t count = 1U << costless.size();
  const auto heads_of = [&](std::uint32_t bits) {
    std::vector<HeadId> heads;
    for (std::size_t i = 0; i < costless.size(); ++i)
      if ((bits >> i & 1U) != 0) heads.push_back(costless[i]);
    return heads;
  };
  std::vector<std::vector<SequenceResult>> results;
  for (std::uint32_t bits = 0; bits < count; ++bits)
    results.push_back(without(trained, heads_of(bits)).per_sequence);
  const auto is_costly = [&](const Effect& effect, const Effect& excess) {
    JointEffect set{{}, effect, excess};
    judge_sets({&set, 1}, effects.scale, static_cast<double>(kMaxGroups));
    return set.costly;
  };
  std::vector<std::uint32_t> found;
  for (int size = 2; std::cmp_less_equal(size, costless.size()); ++size) {
    for (std::uint32_t bits = 0; bits < count; ++bits) {
      if (std::popcount(bits) != size || std::ranges::any_of(found, [&](auto f) { return (f & ~bits) == 0; }))
        continue;
      std::vector<SequenceResult> sum = results[0];
      for (std::uint32_t one = 1; one < count; one *= 2) {
        if ((bits & one) == 0) continue;
        for (std::size_t i = 0; i < sum.size(); ++i) {
          sum[i].loss += results[one][i].loss - results[0][i].loss;
          sum[i].correct += results[one][i].correct - results[0][i].correct;
        }
      }
      if (is_costly(effect_between(results[0], results[bits]), effect_between(sum, results[bits])))
        found.push_back(bits);
    }
  }
  Sets groups;
  for (const std::uint32_t bits : found) {
    bool all = true;
    for (std::uint32_t one = 1; one < count; one *= 2)
      if ((bits & one) != 0)
        all = all && is_costly(effect_between(results[0], results[bits]),
                               effect_between(results[bits & ~one], results[bits]));
    if (all || !restored) groups.push_back(heads_of(bits));
  }
  std::ranges::sort(groups);
  return groups;
}

Sets reported_groups(const JointReport& joint) {
  Sets groups;
  for (const JointEffect& group : joint.groups) groups.push_back(group.heads);
  std::ranges::sort(groups);
  return groups;
}

}  // namespace

TEST_CASE("groups of heads are those among all sets of heads", "[inspect][slow]") {
  // In the second, the last head is worth something without the first three, but is not needed.
  std::vector<std::vector<double>> models = {
      {1, 1}, {1, 1, 1, 0.05}, {0.5, 0.5, 0.3, 0.3, 0, 0, 0, 0.01}, {1, 0.02, 0.02, 0}};
  std::mt19937 random(1);
  const double weights[] = {0, 0.01, 0.05, 0.2, 0.5, 1};
  for (int i = 0; i < 8; ++i) {
    models.emplace_back();
    for (int h = 0; h < 4; ++h) models.back().push_back(weights[random() % 6]);
  }
  std::size_t pairs = 0, larger = 0;
  for (const std::vector<double>& weights_of_heads : models) {
    CAPTURE(weights_of_heads);
    Mirrors mirrors(weights_of_heads, 2);
    const EffectsReport effects = measure_effects(mirrors.evaluator);
    const JointReport joint = measure_joint_effects(mirrors.evaluator, effects);
    const Sets expected = groups_of(mirrors, effects);
    CHECK(joint.exact == !joint.pairs.empty());
    CHECK((reported_groups(joint) == expected));
    for (const std::vector<HeadId>& group : expected) (group.size() == 2 ? pairs : larger) += 1;
  }
  CHECK(pairs > 1);
  CHECK(larger > 1);
}

TEST_CASE("a costly set of heads that add a little each is no group", "[inspect]") {
  Mirrors mirrors({0.5, 0.04, 0.04, 0.04, 0.04, 0.04, 0.04, 0.04}, 2);
  const EffectsReport effects = measure_effects(mirrors.evaluator);
  CHECK(groups_of(mirrors, effects, false).size() > 0);
  CHECK(groups_of(mirrors, effects).empty());
  const JointReport joint = measure_joint_effects(mirrors.evaluator, effects);
  CHECK(joint.groups.empty());
  CHECK(joint.tested == static_cast<std::int64_t>(kJointPasses));  // of all sequences, and no more
  CHECK_FALSE(joint.exact);
}

TEST_CASE("the excess of a pair is over the sum of both heads in each sequence", "[inspect]") {
  Trained trained(rich_config());
  EffectsReport effects = measure_effects(trained.evaluator);
  effects.scale.at_chance = false;
  effects.scale.smallest_accuracy = effects.scale.smallest_loss = 100;
  const JointReport joint = measure_joint_effects(trained.evaluator, effects);
  const std::vector<SequenceResult> whole = without(trained, {}).per_sequence;
  std::map<HeadId, std::vector<SequenceResult>> alone;
  for (const HeadEffects& head : effects.heads) alone[head.id] = without(trained, {head.id}).per_sequence;
  bool moves_accuracy = false;
  REQUIRE(joint.pairs.size() == 6);
  for (const JointEffect& pair : joint.pairs) {
    const std::vector<SequenceResult> both = without(trained, pair.heads).per_sequence;
    std::vector<double> losses, corrects, labels;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const SequenceResult &a = alone[pair.heads[0]][i], &b = alone[pair.heads[1]][i];
      losses.push_back(both[i].loss - a.loss - b.loss + whole[i].loss);
      corrects.push_back(static_cast<double>(both[i].correct - a.correct - b.correct + whole[i].correct));
      labels.push_back(static_cast<double>(whole[i].labeled));
    }
    const MeanChange loss = mean_change(losses, labels), accuracy = mean_change(corrects, labels);
    CHECK_THAT(pair.excess.loss_change, WithinAbs(loss.mean, 1e-6));
    CHECK_THAT(pair.excess.interval.low, WithinAbs(loss.interval.low, 1e-5));
    CHECK_THAT(pair.excess.interval.high, WithinAbs(loss.interval.high, 1e-5));
    CHECK_THAT(pair.excess.accuracy_change, WithinAbs(accuracy.mean, 1e-12));
    CHECK_THAT(pair.excess.accuracy_interval.low, WithinAbs(accuracy.interval.low, 1e-12));
    CHECK_THAT(pair.excess.accuracy_p, WithinAbs(accuracy.p, 1e-9));
    moves_accuracy =
        moves_accuracy || std::abs(pair.excess.accuracy_change - pair.effect.accuracy_change) > 1e-3;
  }
  CHECK(moves_accuracy);
}

TEST_CASE("with many heads the order of removal is found on some sequences, its curve on all",
          "[inspect][slow]") {
  Config config = rich_config();
  config.model.heads = 8;
  config.data.test = 300;
  Trained trained(config, 300);
  EffectsReport effects = measure_effects(trained.evaluator);
  effects.scale.at_chance = true;  // no pairs
  effects.scale.smallest_accuracy = effects.scale.smallest_loss = 0.01;
  const JointReport joint = measure_joint_effects(trained.evaluator, effects);
  CHECK(joint.sequences == kMinJointSequences);
  CHECK(joint.pairs.empty());
  CHECK(trained.evaluator.sequences() == 300);
  REQUIRE(joint.greedy.size() == 17);
  CHECK(joint.greedy[0].loss == effects.baseline.loss);
  CHECK(joint.greedy[0].accuracy == effects.baseline.accuracy);

  std::vector<HeadId> removed, order;
  for (std::size_t step = 1; step <= 16; ++step) {
    order.push_back(*joint.greedy[step].id);
    const EvalResult now = without(trained, order);
    CHECK(joint.greedy[step].removed == static_cast<std::int64_t>(step));
    CHECK_THAT(joint.greedy[step].loss, WithinAbs(now.loss, 1e-5));
    CHECK_THAT(joint.greedy[step].accuracy, WithinAbs(now.accuracy, 1e-12));
  }
  trained.evaluator.select(Split::test, kMinJointSequences);
  const EvalResult whole = without(trained, {});
  for (const HeadId& chosen : order) {
    const auto cost = [&](const HeadId& head) {
      std::vector<HeadId> more = removed;
      more.push_back(head);
      const EvalResult result = without(trained, more);
      return std::max(result.loss - whole.loss, whole.accuracy - result.accuracy);
    };
    const double of_chosen = cost(chosen);
    for (const HeadId& other : order)
      if (std::ranges::find(removed, other) == removed.end()) CHECK(of_chosen <= cost(other) + 1e-5);
    removed.push_back(chosen);
  }
}

TEST_CASE("heads are removable until the first step that costs the smallest effect", "[inspect]") {
  Trained trained(rich_config());
  EffectsReport effects = measure_effects(trained.evaluator);
  effects.scale.at_chance = true;
  effects.scale.smallest_accuracy = 1e6;
  const double whole = effects.baseline.loss = 2;  // exact sums
  const JointReport measured = measure_joint_effects(trained.evaluator, effects);
  std::vector<double> limits = {1e-9, 0.0625, 1e3};
  for (const RemovalStep& step : measured.greedy)
    if (step.loss > whole) limits.push_back(step.loss - whole);  // a cost of exactly 1
  for (const double limit : limits) {
    CAPTURE(limit);
    effects.scale.smallest_loss = limit;
    // One that costs as much as the smallest effect, after ones below it and before one below it.
    const double costs[] = {0, 0.5, 1, 0.25};
    for (std::size_t k = 0; k < 4; ++k) {
      effects.cumulative_ablation[k + 1].loss = whole + costs[k] * 0.0625;
      effects.cumulative_ablation[k + 1].accuracy = effects.baseline.accuracy;
      effects.heads[k].zero.loss_change = costs[k] * 0.0625;
      effects.heads[k].zero.accuracy_change = 0;
    }
    const JointReport joint = measure_joint_effects(trained.evaluator, effects);
    std::int64_t greedily = 0, by_importance = 0, alone = 0;
    while (greedily < 4 && joint.greedy[static_cast<std::size_t>(greedily + 1)].loss - whole < limit)
      ++greedily;
    while (by_importance < 4 && costs[by_importance] * 0.0625 < limit) ++by_importance;
    for (const double cost : costs) alone += cost * 0.0625 < limit;
    CHECK(joint.removable_greedily == greedily);
    CHECK(joint.removable_by_importance == by_importance);
    CHECK(joint.removable_alone == alone);
  }
}
