// Effects of sets of heads, against all sets of heads whose output weights are zero.
#include "inspect/effects/joint_effects.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <set>

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
  explicit Mirrors(const std::vector<double>& weights, double confidence = 10, std::int64_t sequences = 500)
      : Trained(
            [&] {
              Config config = hand_made::mirror().config.values();
              config.model.heads = std::ssize(weights);
              config.data.test = sequences;  // 500 show that a head costs nothing, if it changes nothing
              return config;
            }(),
            sequences, 0) {
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

// Returns the pairs with a head that costs nothing alone, but something without the other, and minimal larger sets of such
// heads that cost something, in which every head, if it stays, is worth the smallest effect; or whatever they are worth.
Sets groups_of(Trained& trained, const EffectsReport& effects, bool restored = true) {
  std::vector<Effect> zero;
  for (const HeadEffects& head : effects.heads) zero.push_back(head.zero);
  const std::vector<HeadVerdict> verdicts = judge_heads(zero, effects.scale);
  const auto heads_of = [&](std::uint32_t bits) {
    std::vector<HeadId> heads;
    for (std::size_t i = 0; i < zero.size(); ++i)
      if ((bits >> i & 1U) != 0) heads.push_back(effects.heads[i].id);
    return heads;
  };
  std::map<std::uint32_t, std::vector<SequenceResult>> results;
  const auto result = [&](std::uint32_t bits) -> const std::vector<SequenceResult>& {
    if (!results.contains(bits)) results[bits] = without(trained, heads_of(bits)).per_sequence;
    return results[bits];
  };
  std::uint32_t costless = 0;
  for (std::size_t h = 0; h < zero.size(); ++h)
    if (verdicts[h].verdict == Verdict::unused) costless |= 1U << h;
  const auto worth = [&](std::uint32_t others, std::uint32_t all) {
    return bounded_changes(result(others), result(all), effects.scale.bounds);
  };
  std::vector<std::pair<std::uint32_t, std::uint32_t>> tested;  // a pair, and the head of it that stays
  std::vector<BoundedChanges> of_tested;
  for (std::uint32_t a = 0; a < zero.size(); ++a)
    for (std::uint32_t b = a + 1; b < zero.size(); ++b)
      for (const std::uint32_t head : {a, b}) {
        if ((costless >> head & 1U) == 0) continue;
        const std::uint32_t pair = 1U << a | 1U << b;
        tested.emplace_back(pair, head);
        of_tested.push_back(worth(pair & ~(1U << head), pair));
      }
  const std::vector<Shown> shown = judge_worth(of_tested, effects.scale);
  std::set<std::uint32_t> pairs;
  std::vector<std::uint32_t> found;
  for (std::size_t i = 0; i < tested.size(); ++i)
    if (shown[i] != Shown::no && pairs.insert(tested[i].first).second && (tested[i].first & ~costless) == 0)
      found.push_back(tested[i].first);
  const auto is_costly = [&](const BoundedChanges& one) {
    return judge_worth({&one, 1}, effects.scale, static_cast<double>(kMaxGroups))[0] != Shown::no;
  };
  const std::size_t known = found.size();
  for (int size = 3; size <= std::popcount(costless); ++size)
    for (std::uint32_t bits = 0; bits < 1U << zero.size(); ++bits)
      if (std::popcount(bits) == size && (bits & ~costless) == 0 &&
          std::ranges::none_of(found, [&](auto f) { return (f & ~bits) == 0; }) && is_costly(worth(0, bits)))
        found.push_back(bits);
  Sets groups;
  for (const std::uint32_t pair : pairs) groups.push_back(heads_of(pair));
  for (std::size_t i = known; i < found.size(); ++i) {
    bool all = true;
    for (std::uint32_t one = 1; one <= found[i]; one *= 2)
      if ((found[i] & one) != 0) all = all && is_costly(worth(found[i] & ~one, found[i]));
    if (all || !restored) groups.push_back(heads_of(found[i]));
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
    CHECK((reported_groups(joint) == expected));
    for (const std::vector<HeadId>& group : expected) (group.size() == 2 ? pairs : larger) += 1;
  }
  CHECK(pairs > 1);
  CHECK(larger > 1);
}

TEST_CASE("a costly set of heads that add a little each is no group", "[inspect][slow]") {
  Mirrors mirrors({1, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01}, 0.5, 1500);
  const EffectsReport effects = measure_effects(mirrors.evaluator);
  CHECK(groups_of(mirrors, effects, false).size() > 0);
  CHECK(groups_of(mirrors, effects).empty());
  const JointReport joint = measure_joint_effects(mirrors.evaluator, effects);
  CHECK(joint.groups.empty());
  // As many as 30 passes over all sequences, and no more.
  CHECK(joint.tested ==
        static_cast<std::int64_t>(kJointPasses * 1500 / static_cast<double>(joint.group_sequences)));
  CHECK_FALSE(joint.exact);
}

TEST_CASE("a head is worth in a pair what is lost without both, beyond what is lost without the other",
          "[inspect]") {
  Trained trained(rich_config());
  EffectsReport effects = measure_effects(trained.evaluator);
  effects.scale.at_chance = false;
  const JointReport joint = measure_joint_effects(trained.evaluator, effects);
  bool moves_accuracy = false;
  REQUIRE(joint.pairs.size() == 6);
  for (const PairEffect& pair : joint.pairs) {
    const EvalResult both = without(trained, {pair.heads[0], pair.heads[1]});
    for (const std::size_t k : {0, 1}) {
      const EvalResult other = without(trained, {pair.heads[1 - k]});
      double capped = 0, labels = 0;
      for (std::size_t i = 0; i < both.per_sequence.size(); ++i) {
        capped += both.per_sequence[i].capped_loss - other.per_sequence[i].capped_loss;
        labels += static_cast<double>(both.per_sequence[i].labeled);
      }
      CHECK_THAT(pair.worth_accuracy[k], WithinAbs(other.accuracy - both.accuracy, 1e-12));
      CHECK_THAT(pair.worth_loss[k], WithinAbs(capped / labels, 1e-6));
      moves_accuracy = moves_accuracy || std::abs(pair.worth_accuracy[k] + pair.accuracy_change) > 1e-3;
    }
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
  CHECK(joint.group_sequences == kMinJointSequences);
  CHECK(joint.sequences == 0);
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

TEST_CASE("heads are removable up to the last step that costs less than the smallest effect", "[inspect]") {
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
      effects.heads[k].zero.accuracy.mean = 0;
    }
    const JointReport joint = measure_joint_effects(trained.evaluator, effects);
    std::int64_t greedily = 0, by_importance = 0, alone = 0;
    for (std::int64_t step = 1; step <= 4; ++step) {
      if (joint.greedy[static_cast<std::size_t>(step)].loss - whole < limit) greedily = step;
      if (costs[step - 1] * 0.0625 < limit) by_importance = step;
    }
    for (const double cost : costs) alone += cost * 0.0625 < limit;
    CHECK(joint.removable_greedily == greedily);
    CHECK(joint.removable_by_importance == by_importance);
    CHECK(joint.removable_alone == alone);
  }
}
