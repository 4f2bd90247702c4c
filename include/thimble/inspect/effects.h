// Effects of heads: what changes when a head's output z_h = A_h V_h, before the output projection and without
// its bias, is ablated or patched, and the gradient importance of the head.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thimble/engine/attention_layer.h"
#include "thimble/inspect/interval.h"
#include "thimble/train/json.h"
#include "thimble/train/results.h"
#include "thimble/train/statistics.h"

namespace thimble {

// A change with bounds, as BoundedMean defines it: its 95 % interval, and the p-value of no change.
struct BoundedChange {
  double mean = 0;  // NaN without an answer
  Interval interval;
  double p = 1;
};

// The change that an intervention makes, on the same sequences. Loss: mean cross entropy per labeled
// position, nats; accuracy: share of labeled positions predicted correctly.
struct Effect {
  double loss_change = 0;                  // NaN without a sequence
  Interval interval;                       // of the loss; approximate, see MeanChange
  BoundedChange accuracy, capped_loss;     // the loss of a position counts up to EffectScale::chance_loss
  std::int64_t sequences = 0, labels = 0;  // that the changes are means over
  std::int64_t distinct = 0;               // draws of the data that the sequences are, as EvalResult has them
  // The change of the accuracy among answers that can be known, and how many these are; 0: the task does not state them.
  double knowable_change = 0;
  std::int64_t knowable = 0;
};

// What bounds the change of an answer: the most that its loss counts, and the most answers of a draw.
struct AnswerBounds {
  double loss_cap = 1, most_labels = 1;
  // By sequence, the draw of the data that it is or, as others in a row with the same input, is part of; empty: all differ.
  std::vector<std::int64_t> draws{};
};

// Michel, Levy and Neubig, "Are sixteen heads really better than one?", NeurIPS 2019, equation 2:
// E_x |<z_h(x), dL(x)/dz_h(x)>|, where x is a sequence, the inner product is over all of its positions, L(x)
// is its cross entropy summed over labeled positions, and E the mean over sequences.
struct Importance {
  double raw = 0;
  double normalized = 0;  // raw / l2 norm of the raw values of the layer, as in the paper; 0 if that is 0
};

// The default of --smallest-effect.
inline constexpr double kSmallestEffect = 0.01;

// Zero, mean and resample ablation of a set of heads; see HeadEffects.
struct AblationReport {
  EvalResult baseline;
  std::vector<HeadId> heads;
  std::vector<std::string> names;  // head_name() of each
  Effect zero, mean, resample;
  std::int64_t unpaired = 0;  // see EffectsReport
};

inline constexpr double kUntrainedDeviations = 4;

// The scale on which effects are judged: the way from chance to a perfect model. The best constant answer is
// the most frequent label of the analyzed sequences; in loss, it is the distribution of their labels.
struct EffectScale {
  double chance_accuracy = 0, chance_loss = 0;
  std::optional<double> lowest_loss{};  // that the task states
  // The smallest effects of interest: a share of the way from chance to an accuracy of 1 and to lowest_loss, or
  // a loss of 0. 0 where there is no way to go.
  double smallest_accuracy = 0, smallest_loss = 0;
  // How far the means move when every value of a pass changes by one unit in the last place, at random; an
  // upper bound that takes the moves of all sequences to have the same sign.
  double rounding_accuracy = 0, rounding_loss = 0;
  Effect above_chance;  // of the model, compared with the best constant answer
  AnswerBounds bounds;  // of effects; the loss of an answer counts up to chance_loss
  // Of untrained models. With few different labels, some are right more often than a constant answer.
  Spread untrained_accuracy{}, untrained_loss{};
  // True: the model is not better than the best constant answer by the smallest effect, with the intervals of accuracy and
  // capped loss, or than untrained models by kUntrainedDeviations standard deviations in either. False: it is better in
  // one of them. Unknown where the intervals show neither, or nothing is of interest.
  std::optional<bool> at_chance = false;
  // Returns whether effects can be of interest: not where the best constant answer is always right.
  bool has_smallest() const { return smallest_accuracy > 0; }
};

struct HeadEffects {
  HeadId id;
  Effect zero;  // z_h replaced by 0
  Effect mean;  // z_h replaced by its mean at the position, over the sequences that have the position
  // z_h replaced by its value at the position on another sequence of the same length, if there is one; a mean
  // over the sequences that have one.
  Effect resample;
  Importance importance;
};

// The result after zero ablation of `removed` heads, the last of which is `id`.
struct RemovalStep {
  std::int64_t removed = 0;
  std::optional<HeadId> id{};  // none before the first removal
  double loss = 0, accuracy = 0;
};

struct EffectsReport {
  EvalResult baseline;  // without an intervention, with the result of each sequence
  EffectScale scale;
  std::vector<HeadEffects> heads;                // by HeadId
  std::vector<RemovalStep> cumulative_ablation;  // by increasing gradient importance
  std::int64_t unpaired = 0;                     // sequences of unique length, without a resample ablation
};

// The changes of answers that have bounds, to be asked for intervals and p-values.
struct BoundedChanges {
  BoundedMean accuracy, capped_loss;
};

// Returns the mean loss of an answer, 0 without one.
double loss_of(const EvalResult&, double SequenceResult::*of = &SequenceResult::capped_loss);

// Return the change from `before` to `after`, the results of the same sequences.
BoundedChanges bounded_changes(std::span<const SequenceResult> before, std::span<const SequenceResult> after,
                               const AnswerBounds&);
Effect effect_between(std::span<const SequenceResult> before, std::span<const SequenceResult> after,
                      const AnswerBounds&);

// {"chance", "at_chance", "above_chance", "lowest_loss", "smallest_effect", "rounding"}
Json to_json(const EffectScale&);
Json to_json(const Effect&);       // {"loss_change", ..., "sequences", "labels"}
Json to_json(const HeadEffects&);  // {"zero", "mean", "resample"}, without the importance
Json to_json(const Importance&);   // {"raw", "normalized"}
// {"removed", "layer", "head", "name", "loss", "accuracy"}
Json to_json(const RemovalStep&, std::span<const AttentionLayer>);
Json to_json(const AblationReport&);  // {"heads", "baseline", "zero", "mean", "resample", "unpaired"}

}  // namespace thimble
