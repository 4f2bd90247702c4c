// Verdicts: what the effects of a head, alone and together with others, say about it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/inspect/effects.h"

namespace thimble {

enum class Verdict {
  important,   // ablating the head costs at least the smallest effect of interest
  harmful,     // ablating it improves the model by at least as much
  backup,      // costs nothing alone, but a group of such heads costs more together than each alone
  redundant,   // has a pattern, but ablating it costs nothing, alone or in a group
  unused,      // neither
  at_chance,   // the model is no better than chance, so its heads do nothing of interest
  not_enough,  // too few queries, or too wide an interval
};
std::string_view verdict_name(Verdict);

// The error rate of all verdicts on single heads together, of those on pairs, and of those on larger groups.
inline constexpr double kErrorRate = 0.05;

// The zero ablation of several heads together.
struct JointEffect {
  std::vector<HeadId> heads;
  Effect effect;
  Effect excess;  // of the changes over the sum of the changes by each head alone
  bool costly = false;
};

// What is known about sets of heads.
struct JointReport {
  std::int64_t sequences = 0;      // the first of the analyzed ones, which sets of heads are measured on
  std::vector<JointEffect> pairs;  // of heads that cost nothing alone
  // Minimal costly sets, smallest first, in which every head, if it stays, is worth the smallest effect.
  std::vector<JointEffect> groups;
  std::int64_t tested = 0;          // sets of three or more heads that were measured
  bool exact = false;               // groups has all of them, see find_groups
  std::vector<RemovalStep> greedy;  // removes the head whose removal costs least, measured anew at each step
  // Heads that cost less than the smallest effect of interest: removed in either order, and each alone.
  std::int64_t removable_by_importance = 0, removable_greedily = 0, removable_alone = 0;
};

struct HeadVerdict {
  Verdict verdict = Verdict::unused;
  std::vector<HeadId> group{};       // of a backup, the other heads of its group
  std::vector<std::string> names{};  // of the group
  Effect group_effect{};             // of a backup, the ablation of its whole group
};

// Returns the largest cost of an ablation in units of the smallest effect of interest: the loss of accuracy
// or the rise of the loss.
double cost_in_smallest(double loss_change, double accuracy_change, const EffectScale& scale);

// Returns the verdict on each head alone: important, harmful, unused, at_chance or not_enough. An effect
// counts where it is at least the smallest effect of interest and more than the rounding error, and
// significant after Holm's correction for all heads, in accuracy and loss; accuracy comes first. A head is
// unused where the 95 % intervals exclude the smallest effect of interest, otherwise evidence is not enough.
std::vector<Verdict> judge_heads(std::span<const Effect> zero, const EffectScale& scale);

// Sets `costly` of sets that are judged together: the cost and its excess over the sum of the heads' own are
// at least the smallest effect of interest and more than the rounding error, and the excess is significant
// after Holm's correction for all sets and, for sets that were not chosen in advance, after Bonferroni's for
// the most that may be tested.
void judge_sets(std::span<JointEffect> sets, const EffectScale& scale, double corrected_for = 1);

// Returns the verdicts on all heads, with the smallest group of each backup.
std::vector<HeadVerdict> judge(std::span<const HeadEffects> heads, const EffectScale& scale,
                               const JointReport& joint, std::span<const AttentionLayer> layers);

Json to_json(const JointEffect&, std::span<const AttentionLayer> layers);

}  // namespace thimble
