// Verdicts: what the effects of a head, alone and together with others, say about it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/inspect/effects.h"

namespace thimble {

enum class Verdict {
  important,   // ablating the head costs more than the smallest effect of interest
  harmful,     // ablating it improves the model by more than that
  minor,       // ablating it changes something, perhaps less than the smallest effect of interest
  backup,      // costs nothing alone, but is worth something where another head, or a group, is ablated
  redundant,   // has a pattern, but ablating it costs nothing
  unused,      // neither
  at_chance,   // the model is no better than chance, so its heads do nothing of interest
  not_enough,  // too few queries, or too wide an interval
};
std::string_view verdict_name(Verdict);

// The error rate of all verdicts on single heads together, of those on pairs, and of those on larger groups.
inline constexpr double kErrorRate = 0.05;

// The zero ablation of two heads together.
struct PairEffect {
  std::array<HeadId, 2> heads;
  double loss_change = 0, accuracy_change = 0, capped_loss_change = 0;
  // What each head is worth without the other: how much lower the accuracy, and how much higher the capped loss, is without
  // both than without the other.
  std::array<double, 2> worth_accuracy{}, worth_loss{};
};

// A head that costs nothing alone, but something where others are ablated.
struct Backup {
  HeadId head;
  Effect worth;          // of ablating it where they are ablated
  bool in_loss = false;  // whether the capped loss shows it, not the accuracy
};

// The zero ablation of several heads together, and those of them that are backups for the others.
struct JointEffect {
  std::vector<HeadId> heads;
  Effect effect;
  std::vector<Backup> backups;
};

// What is known about sets of heads.
struct JointReport {
  std::int64_t sequences = 0;     // the first of the analyzed ones, which pairs are measured on
  std::vector<PairEffect> pairs;  // all pairs of heads
  std::vector<HeadId> worthless;  // heads that are shown to be worth nothing, whichever other head is ablated
  std::vector<JointEffect> cancelling;  // pairs of important heads that cost nothing together
  // Pairs in which a head is a backup, and minimal larger sets in which every head is; smallest first.
  std::vector<JointEffect> groups;
  std::int64_t group_sequences = 0;  // which larger sets and the greedy order are measured on
  std::int64_t tested = 0;           // sets of three or more heads that were measured
  bool exact = false;                // groups has all of them, see find_groups
  std::vector<RemovalStep> greedy;   // removes the head whose removal costs least, measured anew at each step
  // Heads that cost less than the smallest effect of interest: removed in either order, and each alone.
  std::int64_t removable_by_importance = 0, removable_greedily = 0, removable_alone = 0;
};

struct HeadVerdict {
  Verdict verdict = Verdict::unused;
  bool in_loss = false;  // whether the capped loss decided, not the accuracy
  double loss_cap = 0;   // nats an answer
  // Whether the accuracy is shown to change by less than the smallest effect of interest.
  bool keeps_answers = false;
  // Of not_enough, about how many sequences would show that the head is unused, if its effect is what it seems; none
  // where that is an effect of interest.
  std::optional<double> needed{};
  bool in_pairs = false;             // of unused, whether that is shown for every pair, too
  std::vector<HeadId> group{};       // of a backup, the other heads of its group
  std::vector<std::string> names{};  // of the group; of an important head, of those that it cancels
  Effect worth{};                    // of a backup, of ablating it where its group is ablated

  // Whether what the head does raises the measure that decided: accuracy, unless it is harmful, or the loss if it is.
  bool is_rise() const { return in_loss == (verdict == Verdict::harmful); }
};

// Returns the largest cost of an ablation in units of the smallest effect of interest: the loss of accuracy
// or the rise of the loss.
double cost_in_smallest(double loss_change, double accuracy_change, const EffectScale& scale);

// Returns the verdict on each head alone: important, harmful, minor, unused, at_chance or not_enough, in accuracy and in
// capped loss. A head is unused where both intervals are within the smallest effect of interest. Otherwise a change counts
// that is significant after Holm's correction for all heads and both measures; it is of interest where its own interval
// ends beyond the smallest effect and the rounding error. Accuracy comes first.
std::vector<HeadVerdict> judge_heads(std::span<const Effect> zero, const EffectScale& scale);

// Whether a head is worth the smallest effect of interest where others are ablated, and in which measure that shows.
enum class Shown { no, in_accuracy, in_loss };

// Returns it for changes from the results without the others to those without the head, too: by p-values after Holm's
// correction for all of them and both measures and, for sets that were not chosen in advance, Bonferroni's for the most that
// may be tested, and by the end of the interval that is nearest to 0.
std::vector<Shown> judge_worth(std::span<const BoundedChanges> changes, const EffectScale& scale,
                               double corrected_for = 1);

// Returns whether the intervals of both costs end below the smallest effect of interest.
bool is_worthless(const BoundedChanges& changes, const EffectScale& scale);

// Returns the verdicts on all heads, with the smallest group of each backup.
std::vector<HeadVerdict> judge(std::span<const HeadEffects> heads, const EffectScale& scale,
                               const JointReport& joint, std::span<const AttentionLayer> layers);

Json to_json(const PairEffect&, std::span<const AttentionLayer> layers);
Json to_json(const JointEffect&, std::span<const AttentionLayer> layers);

}  // namespace thimble
