#include "inspect/effects/joint_effects.h"

#include <algorithm>
#include <numeric>

#include "inspect/effects/groups.h"
#include "inspect/effects/measure_effects.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Sums of the changes by single heads, as if each sequence had them all.
std::vector<SequenceResult> sum_of_changes(const std::vector<SequenceResult>& baseline,
                                           const std::vector<const EvalResult*>& alone) {
  std::vector<SequenceResult> sum = baseline;
  for (const EvalResult* result : alone)
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i].loss += result->per_sequence[i].loss - baseline[i].loss;
      sum[i].correct += result->per_sequence[i].correct - baseline[i].correct;
    }
  return sum;
}

// Returns about how many passes over the whole model pairs of some heads and the greedy removal of all take.
double pass_count(const Evaluator& evaluator, const std::vector<std::int64_t>& costless,
                  const std::vector<std::int64_t>& all) {
  const auto share = [&](std::int64_t block) {
    return evaluator.share_from(static_cast<std::size_t>(block));
  };
  double passes = 1;
  for (std::size_t i = 0; i < costless.size(); ++i)
    passes += static_cast<double>(i + 1) * share(costless[i]);  // alone, and with every head before it
  for (const std::int64_t block : all) passes += 1 + share(block) * static_cast<double>(all.size() + 1) / 2;
  return passes;
}

class JointMeasurement {
 public:
  JointMeasurement(Evaluator& evaluator, const EffectsReport& effects)
      : evaluator_(evaluator), effects_(effects), layers_(evaluator.model().attention_layers()) {
    for (const HeadEffects& head : effects.heads) heads_.push_back(head.id);
    std::vector<Effect> zero;
    for (const HeadEffects& head : effects.heads) zero.push_back(head.zero);
    const std::vector<Verdict> verdicts = judge_heads(zero, effects.scale);
    for (std::size_t i = 0; i < heads_.size(); ++i)
      if (verdicts[i] == Verdict::unused || verdicts[i] == Verdict::not_enough) costless_.push_back(i);
  }

  JointReport finish() {
    const std::int64_t all = evaluator_.sequences();
    std::vector<std::int64_t> costless, blocks;
    for (const std::size_t head : costless_) costless.push_back(static_cast<std::int64_t>(block(head)));
    for (std::size_t head = 0; head < heads_.size(); ++head)
      blocks.push_back(static_cast<std::int64_t>(block(head)));
    const double affordable =
        kJointPasses / pass_count(evaluator_, costless, blocks) * static_cast<double>(all);
    report_.sequences = std::min(all, std::max(kMinJointSequences, static_cast<std::int64_t>(affordable)));
    const double passes = kJointPasses * static_cast<double>(all) / static_cast<double>(report_.sequences);
    max_groups_ = std::min(kMaxGroups, static_cast<std::size_t>(passes));
    evaluator_.select(evaluator_.split(), report_.sequences);
    if (costless_.size() > 1) {
      measure_pairs();
      find_larger_groups();
      std::ranges::stable_sort(report_.groups, {}, [](const JointEffect& set) { return set.heads.size(); });
    }
    const std::vector<HeadId> order = greedy_order();
    evaluator_.select(evaluator_.split(), all);
    measure_removal(order);
    return std::move(report_);
  }

 private:
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

  // Ablates every costless head a alone, and with every other b. A pass starts at a block with the input that the
  // latest pass through the block before it left. So a goes from the last block to the first: until it is ablated
  // alone, all passes start at its block or later, and the input there is that of the whole model. After that, the
  // later blocks have inputs without a, which are those of b, as b goes from the last block to the first, too.
  void measure_pairs() {
    std::vector<SetPass> series{{{}, 0}};
    const std::vector<std::size_t> order = last_first(costless_);
    for (const std::size_t a : order) {
      for (const std::size_t b : order)
        if (block(b) == block(a) && b < a) series.push_back({{b, a}, block(a)});
      series.push_back({{a}, block(a)});
      for (const std::size_t b : order)
        if (block(b) > block(a)) series.push_back({{a, b}, block(b)});
    }
    std::vector<EvalResult> results = run(series);
    baseline_ = std::move(results[0]);
    alone_.resize(heads_.size());
    for (std::size_t k = 1; k < series.size(); ++k)
      if (series[k].heads.size() == 1) alone_[series[k].heads[0]] = results[k];
    for (std::size_t k = 1; k < series.size(); ++k)
      if (series[k].heads.size() == 2) report_.pairs.push_back(effect_of(series[k].heads, results[k]));
    std::ranges::sort(report_.pairs, {}, &JointEffect::heads);
    judge_sets(report_.pairs, effects_.scale);
    for (const JointEffect& pair : report_.pairs)
      if (pair.costly) report_.groups.push_back(pair);
  }

  JointEffect effect_of(const std::vector<std::size_t>& heads, const EvalResult& result) const {
    std::vector<const EvalResult*> alone;
    for (const std::size_t head : heads) alone.push_back(&alone_[head]);
    return {ids(heads), effect_between(baseline_.per_sequence, result.per_sequence),
            effect_between(sum_of_changes(baseline_.per_sequence, alone), result.per_sequence)};
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
      inputs_[b] = evaluator_.block_input(b, report_.sequences);
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

  // Returns whether each head of a minimal costly set, if it is the only one that stays, is worth the smallest
  // effect of interest. In a set of many heads that add a little each, none is.
  bool is_restored(const HeadSet& set, JointEffect group) {
    const EvalResult all = without(set);
    return std::ranges::all_of(set, [&](std::size_t kept) {
      HeadSet rest = set;
      std::erase(rest, kept);
      group.excess = effect_between(without(rest).per_sequence, all.per_sequence);
      judge_sets({&group, 1}, effects_.scale, static_cast<double>(max_groups_));
      return group.costly;
    });
  }

  void find_larger_groups() {
    capture_inputs();
    std::vector<HeadSet> known;
    for (const JointEffect& pair : report_.groups) {
      HeadSet& set = known.emplace_back();
      for (std::size_t i = 0; i < costless_.size(); ++i)
        if (std::ranges::find(pair.heads, heads_[costless_[i]]) != pair.heads.end()) set.push_back(i);
    }
    std::vector<std::pair<HeadSet, JointEffect>> measured;
    const auto is_costly = [&](const HeadSet& set) {
      JointEffect effect = effect_of(heads_of(set), without(set));
      judge_sets({&effect, 1}, effects_.scale, static_cast<double>(max_groups_));
      if (effect.costly) measured.emplace_back(set, effect);
      return effect.costly;
    };
    const GroupSearch search = find_groups(costless_.size(), known, true, is_costly, max_groups_);
    for (const auto& [set, effect] : measured)
      if (std::ranges::find(search.groups, set) != search.groups.end() && is_restored(set, effect))
        report_.groups.push_back(effect);
    report_.tested = static_cast<std::int64_t>(search.tested);
    report_.exact = search.exact;
  }

  // Removes at each step the head that costs least together with those that are removed already.
  std::vector<HeadId> greedy_order() {
    EvalResult whole;
    std::vector<std::size_t> removed, rest(heads_.size());
    std::iota(rest.begin(), rest.end(), std::size_t{0});
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
      removed.push_back(std::ranges::min(costs).second);
      std::erase(rest, removed.back());
    }
    return ids(removed);
  }

  double cost_of(double loss, double accuracy, const EvalResult& whole) const {
    return cost_in_smallest(loss - whole.loss, accuracy - whole.accuracy, effects_.scale);
  }

  // Sets the greedy steps, measured on all sequences, and the numbers of removable heads.
  void measure_removal(const std::vector<HeadId>& order) {
    report_.greedy = removal_steps(evaluator_, order, effects_.baseline);
    const auto removable = [&](const std::vector<RemovalStep>& steps) {
      std::int64_t count = 0;
      for (const RemovalStep& step : steps) {
        if (step.removed == 0) continue;
        if (cost_of(step.loss, step.accuracy, effects_.baseline) >= 1) break;
        ++count;
      }
      return count;
    };
    report_.removable_by_importance = removable(effects_.cumulative_ablation);
    report_.removable_greedily = removable(report_.greedy);
    report_.removable_alone = std::ranges::count_if(effects_.heads, [&](const HeadEffects& head) {
      return cost_in_smallest(head.zero.loss_change, head.zero.accuracy_change, effects_.scale) < 1;
    });
  }

  Evaluator& evaluator_;
  const EffectsReport& effects_;
  const std::vector<AttentionLayer>& layers_;
  std::vector<HeadId> heads_;
  std::vector<std::size_t> costless_;    // heads that cost nothing alone
  std::vector<BlockInput> inputs_;       // of every block, of the whole model
  EvalResult baseline_;                  // on the selected sequences
  std::vector<EvalResult> alone_;        // of costless heads
  std::size_t max_groups_ = kMaxGroups;  // that the search for larger groups measures
  JointReport report_;
};

}  // namespace

double joint_passes(const Evaluator& evaluator) {
  std::vector<std::int64_t> blocks;
  for (const AttentionLayer& layer : evaluator.model().attention_layers())
    blocks.insert(blocks.end(), static_cast<std::size_t>(layer.heads), layer.block);
  return pass_count(evaluator, blocks, blocks);
}

JointReport measure_joint_effects(Evaluator& evaluator, const EffectsReport& effects) {
  return JointMeasurement(evaluator, effects).finish();
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
