#include "inspect/effects/joint_effects.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "inspect/effects/groups.h"
#include "inspect/effects/measure_effects.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Returns about how many passes over the whole model all pairs of heads of these blocks take, and the greedy removal of
// all.
struct PassCount {
  double pairs = 0, greedy = 0;
};

PassCount count_passes(const Evaluator& evaluator, const std::vector<std::int64_t>& blocks) {
  PassCount count;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const double share = evaluator.share_from(static_cast<std::size_t>(blocks[i]));
    count.pairs += static_cast<double>(i + 1) * share;  // alone, and with every head before it
    count.greedy += 1 + share * static_cast<double>(blocks.size() + 1) / 2;
  }
  return count;
}

std::vector<std::int64_t> blocks_of_heads(const Evaluator& evaluator) {
  std::vector<std::int64_t> blocks;
  for (const AttentionLayer& layer : evaluator.model().attention_layers())
    blocks.insert(blocks.end(), static_cast<std::size_t>(layer.heads), layer.block);
  return blocks;
}

class JointMeasurement {
 public:
  JointMeasurement(Evaluator& evaluator, const EffectsReport& effects)
      : evaluator_(evaluator), effects_(effects), layers_(evaluator.model().attention_layers()) {
    for (const HeadEffects& head : effects.heads) heads_.push_back(head.id);
    std::vector<Effect> zero;
    for (const HeadEffects& head : effects.heads) zero.push_back(head.zero);
    verdicts_ = judge_heads(zero, effects.scale);
    for (std::size_t i = 0; i < heads_.size(); ++i)
      if (verdicts_[i].verdict == Verdict::unused) costless_.push_back(i);
  }

  JointReport finish() {
    const std::int64_t all = evaluator_.sequences();
    const PassCount passes = count_passes(evaluator_, blocks_of_heads(evaluator_));
    const auto affordable = [&](double limit, double needed) {
      return std::clamp(static_cast<std::int64_t>(limit / needed * static_cast<double>(all)), std::int64_t{1},
                        all);
    };
    const bool has_pairs = !effects_.scale.at_chance.value_or(false) && heads_.size() > 1;
    if (has_pairs) {
      report_.sequences = affordable(kPairPasses, passes.pairs);
      evaluator_.select(evaluator_.split(), report_.sequences);
      measure_pairs();
    }
    report_.group_sequences =
        std::max(std::min(all, kMinJointSequences), affordable(kJointPasses, passes.greedy));
    max_groups_ =
        std::min(kMaxGroups, static_cast<std::size_t>(kJointPasses * static_cast<double>(all) /
                                                      static_cast<double>(report_.group_sequences)));
    evaluator_.select(evaluator_.split(), report_.group_sequences);
    if (has_pairs && costless_.size() > 2) find_larger_groups();
    const std::vector<HeadId> order = greedy_order();
    evaluator_.select(evaluator_.split(), all);
    measure_removal(order);
    return std::move(report_);
  }

 private:
  // Results without two heads, by their indices.
  using Pairs = std::map<std::vector<std::size_t>, const EvalResult*>;

  struct SetPass {
    std::vector<std::size_t> heads;  // ablated
    std::size_t block;               // to start from
  };

  std::size_t block(std::size_t head) const {
    return static_cast<std::size_t>(layers_[static_cast<std::size_t>(heads_[head].layer)].block);
  }

  std::vector<EvalResult> run(const std::vector<SetPass>& series) {
    std::vector<std::size_t> blocks;
    std::vector<std::vector<HeadId>> ablated;
    for (const SetPass& pass : series) {
      blocks.push_back(pass.block);
      ablated.push_back(ids(pass.heads));
    }
    return evaluator_.run_series(blocks, [&](std::size_t k) { return replace_heads(layers_, ablated[k]); });
  }

  std::vector<HeadId> ids(const std::vector<std::size_t>& heads) const {
    std::vector<HeadId> out;
    for (const std::size_t head : heads) out.push_back(heads_[head]);
    return out;
  }

  // Returns the heads by descending block, in order within a block.
  std::vector<std::size_t> last_first(std::vector<std::size_t> heads) const {
    std::ranges::stable_sort(heads, std::greater(), [&](std::size_t h) { return block(h); });
    return heads;
  }

  std::vector<std::size_t> all_heads() const {
    std::vector<std::size_t> all(heads_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

  // Ablates every head a alone, and with every other b, in a model without some others. A pass starts at a block with the
  // input that the latest pass through the block before it left. So a goes from the last block to the first: until it is
  // ablated alone, all passes start at its block or later, and the input there is that of the first pass. After that, the
  // later blocks have inputs without a, which are those of b, as b goes from the last block to the first, too.
  std::vector<SetPass> pair_passes(const std::vector<std::size_t>& heads,
                                   const std::vector<std::size_t>& removed) const {
    std::vector<SetPass> series{{removed, 0}};
    const auto add = [&](std::initializer_list<std::size_t> more, std::size_t from) {
      series.push_back({removed, from});
      series.back().heads.insert(series.back().heads.end(), more);
    };
    const std::vector<std::size_t> order = last_first(heads);
    for (const std::size_t a : order) {
      for (const std::size_t b : order)
        if (block(b) == block(a) && b < a) add({b, a}, block(a));
      add({a}, block(a));
      for (const std::size_t b : order)
        if (block(b) > block(a)) add({std::min(a, b), std::max(a, b)}, block(b));
    }
    return series;
  }

  void measure_pairs() {
    const std::vector<SetPass> series = pair_passes(all_heads(), {});
    const std::vector<EvalResult> results = run(series);
    std::vector<const EvalResult*> alone(heads_.size());
    Pairs pairs;
    for (std::size_t k = 1; k < series.size(); ++k)
      if (series[k].heads.size() == 1)
        alone[series[k].heads[0]] = &results[k];
      else
        pairs[series[k].heads] = &results[k];
    judge_pairs(results[0], alone, pairs);
  }

  // Finds the backups, the heads that are worth nothing in any pair, and the pairs that cancel.
  void judge_pairs(const EvalResult& whole, const std::vector<const EvalResult*>& alone, const Pairs& pairs) {
    struct Tested {
      std::vector<std::size_t> pair;
      std::size_t head, other;
      const EvalResult* both;
    };
    std::vector<Tested> tested;
    std::vector<BoundedChanges> changes;
    for (const auto& [pair, both] : pairs) {
      PairEffect& effect = report_.pairs.emplace_back();
      effect = {{heads_[pair[0]], heads_[pair[1]]},
                loss_of(*both, &SequenceResult::loss) - loss_of(whole, &SequenceResult::loss),
                both->accuracy - whole.accuracy,
                loss_of(*both) - loss_of(whole)};
      for (const std::size_t k : {0, 1}) {
        const std::size_t head = pair[k], other = pair[1 - k];
        effect.worth_accuracy[k] = alone[other]->accuracy - both->accuracy;
        effect.worth_loss[k] = loss_of(*both) - loss_of(*alone[other]);
        if (verdicts_[head].verdict != Verdict::unused) continue;
        tested.push_back({pair, head, other, both});
        changes.push_back(
            bounded_changes(alone[other]->per_sequence, both->per_sequence, effects_.scale.bounds));
      }
    }
    const std::vector<Shown> shown = judge_worth(changes, effects_.scale);
    std::set<std::size_t> worthless(costless_.begin(), costless_.end());
    for (std::size_t i = 0; i < tested.size(); ++i) {
      const auto& [pair, head, other, both] = tested[i];
      if (worthless.contains(head) && !is_worthless(changes[i], effects_.scale)) worthless.erase(head);
      if (shown[i] == Shown::no) continue;
      if (report_.groups.empty() || report_.groups.back().heads != ids(pair))
        report_.groups.push_back({ids(pair), effect_of(whole, *both), {}});
      report_.groups.back().backups.push_back(
          {heads_[head], effect_of(*alone[other], *both), shown[i] == Shown::in_loss});
    }
    if (report_.sequences == effects_.baseline.sequences)
      for (const std::size_t head : worthless) report_.worthless.push_back(heads_[head]);
    find_cancelling(whole, pairs);
  }

  void find_cancelling(const EvalResult& whole, const Pairs& pairs) {
    const auto is_important = [&](std::size_t head) { return verdicts_[head].verdict == Verdict::important; };
    for (const auto& [pair, both] : pairs) {
      if (!std::ranges::all_of(pair, is_important)) continue;
      const Effect effect = effect_of(whole, *both);
      if (judge_heads({&effect, 1}, effects_.scale)[0].verdict == Verdict::unused)
        report_.cancelling.push_back({ids(pair), effect, {}});
    }
  }

  Effect effect_of(const EvalResult& before, const EvalResult& after) const {
    return effect_between(before.per_sequence, after.per_sequence, effects_.scale.bounds);
  }

  std::vector<std::size_t> heads_of(const HeadSet& set) const {
    std::vector<std::size_t> heads;
    for (const std::size_t i : set) heads.push_back(costless_[i]);
    return heads;
  }

  void capture_inputs() {
    inputs_.resize(evaluator_.model().blocks());
    Capture::Sites sites;
    for (std::size_t b = 0; b < inputs_.size(); ++b) {
      inputs_[b] = evaluator_.block_input(b, report_.group_sequences);
      sites.merge(evaluator_.input_sites(inputs_[b]));
    }
    evaluator_.run([&] { return std::make_unique<Capture>(sites); });
  }

  // Runs a pass without a set of heads, from the first block that has one of them.
  EvalResult without(const HeadSet& set) {
    const std::vector<std::size_t> heads = heads_of(set);
    const std::vector<HeadId> ablated = ids(heads);
    std::size_t first = block(heads.front());
    for (const std::size_t head : heads) first = std::min(first, block(head));
    return evaluator_.run([&] { return replace_heads(layers_, ablated); }, Tape::Mode::inference,
                          inputs_.empty() ? nullptr : &inputs_[first]);
  }

  // Returns whether what `after` lacks and `before` has is worth the smallest effect of interest.
  Shown worth(const EvalResult& before, const EvalResult& after) const {
    const BoundedChanges changes =
        bounded_changes(before.per_sequence, after.per_sequence, effects_.scale.bounds);
    return judge_worth({&changes, 1}, effects_.scale, static_cast<double>(max_groups_))[0];
  }

  // Returns the heads of a minimal costly set, whose result is `all`, if each of them, when it is the only one that stays, is
  // worth the smallest effect of interest; otherwise none. In a set of many heads that add a little each, none is.
  std::vector<Backup> backups(const HeadSet& set, const EvalResult& all) {
    std::vector<Backup> found;
    for (const std::size_t kept : set) {
      HeadSet rest = set;
      std::erase(rest, kept);
      const EvalResult others = without(rest);
      const Shown shown = worth(others, all);
      if (shown == Shown::no) return {};
      found.push_back({heads_[costless_[kept]], effect_of(others, all), shown == Shown::in_loss});
    }
    return found;
  }

  void find_larger_groups() {
    capture_inputs();
    const EvalResult whole = evaluator_.run();
    std::vector<HeadSet> known;
    for (const JointEffect& pair : report_.groups) {
      HeadSet set;
      for (std::size_t i = 0; i < costless_.size(); ++i)
        if (std::ranges::find(pair.heads, heads_[costless_[i]]) != pair.heads.end()) set.push_back(i);
      if (set.size() == 2) known.push_back(set);
    }
    const auto is_costly = [&](const HeadSet& set) { return worth(whole, without(set)) != Shown::no; };
    GroupSearch search = find_groups(costless_.size(), known, true, is_costly, max_groups_);
    std::ranges::stable_sort(search.groups, {}, &HeadSet::size);
    for (const HeadSet& set : search.groups) {
      if (set.size() == 2) continue;  // known
      const EvalResult all = without(set);
      if (std::vector<Backup> found = backups(set, all); !found.empty())
        report_.groups.push_back({ids(heads_of(set)), effect_of(whole, all), std::move(found)});
    }
    report_.tested = static_cast<std::int64_t>(search.tested);
    report_.exact = search.exact;
  }

  // Removes at each step the head that costs least together with those that are removed already. The first time that each
  // of them costs the smallest effect of interest, two at once are tried, if that takes at most kJointPasses passes.
  std::vector<HeadId> greedy_order() {
    EvalResult whole;
    std::vector<std::size_t> removed, rest = all_heads();
    bool tried_pairs = false;
    while (!rest.empty()) {
      std::vector<SetPass> series{{removed, 0}};  // the inputs of all others, which go from the last block on
      for (const std::size_t head : last_first(rest)) {
        series.push_back({removed, block(head)});
        series.back().heads.push_back(head);
      }
      const std::vector<EvalResult> results = run(series);
      if (removed.empty()) whole = results[0];
      std::vector<std::pair<double, std::size_t>> costs;
      for (std::size_t k = 1; k < series.size(); ++k)
        costs.emplace_back(cost_of(results[k].loss, results[k].accuracy, whole), series[k].heads.back());
      const auto [cost, cheapest] = std::ranges::min(costs);
      std::vector<std::size_t> next;
      if (cost >= 1 && !std::exchange(tried_pairs, true)) next = removable_pair(rest, removed, whole);
      if (next.empty()) next = {cheapest};
      for (const std::size_t head : next) {
        removed.push_back(head);
        std::erase(rest, head);
      }
    }
    return ids(removed);
  }

  // Returns the two heads that cost least, if that is less than the smallest effect of interest; otherwise none.
  std::vector<std::size_t> removable_pair(const std::vector<std::size_t>& heads,
                                          const std::vector<std::size_t>& removed, const EvalResult& whole) {
    std::vector<std::int64_t> blocks;
    for (const std::size_t head : heads) blocks.push_back(static_cast<std::int64_t>(block(head)));
    const double share =
        static_cast<double>(report_.group_sequences) / static_cast<double>(effects_.baseline.sequences);
    if (count_passes(evaluator_, blocks).pairs * share > kJointPasses) return {};
    const std::vector<SetPass> series = pair_passes(heads, removed);
    const std::vector<EvalResult> results = run(series);
    std::vector<std::size_t> best;
    double least = 1;
    for (std::size_t k = 0; k < series.size(); ++k) {
      const double cost = cost_of(results[k].loss, results[k].accuracy, whole);
      if (series[k].heads.size() < removed.size() + 2 || cost >= least) continue;
      least = cost;
      best.assign(series[k].heads.end() - 2, series[k].heads.end());
    }
    return best;
  }

  double cost_of(double loss, double accuracy, const EvalResult& whole) const {
    return cost_in_smallest(loss - whole.loss, accuracy - whole.accuracy, effects_.scale);
  }

  // Sets the greedy steps, measured on all sequences, and the largest numbers of heads whose removal, in that order, costs
  // nothing of interest.
  void measure_removal(const std::vector<HeadId>& order) {
    report_.greedy = removal_steps(evaluator_, order, effects_.baseline);
    const auto removable = [&](const std::vector<RemovalStep>& steps) {
      std::int64_t most = 0;
      for (const RemovalStep& step : steps)
        if (cost_of(step.loss, step.accuracy, effects_.baseline) < 1) most = step.removed;
      return most;
    };
    report_.removable_by_importance = removable(effects_.cumulative_ablation);
    report_.removable_greedily = removable(report_.greedy);
    report_.removable_alone = std::ranges::count_if(effects_.heads, [&](const HeadEffects& head) {
      return cost_in_smallest(head.zero.loss_change, head.zero.accuracy.mean, effects_.scale) < 1;
    });
  }

  Evaluator& evaluator_;
  const EffectsReport& effects_;
  const std::vector<AttentionLayer>& layers_;
  std::vector<HeadId> heads_;
  std::vector<HeadVerdict> verdicts_;    // on each head alone
  std::vector<std::size_t> costless_;    // heads that are shown to cost nothing alone
  std::vector<BlockInput> inputs_;       // of every block, of the whole model
  std::size_t max_groups_ = kMaxGroups;  // that the search for larger groups measures
  JointReport report_;
};

}  // namespace

double joint_passes(const Evaluator& evaluator) {
  const PassCount count = count_passes(evaluator, blocks_of_heads(evaluator));
  return std::min(kPairPasses, count.pairs) + count.greedy;
}

JointReport measure_joint_effects(Evaluator& evaluator, const EffectsReport& effects) {
  return JointMeasurement(evaluator, effects).finish();
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
