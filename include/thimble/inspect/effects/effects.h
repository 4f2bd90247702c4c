// Effects of heads: what changes when a head's output z_h = A_h V_h, before the output projection and without
// its bias, is ablated or patched, and the gradient importance of the head.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/model/attention_layer.h"
#include "thimble/train/train.h"

namespace thimble {

// The middle 95 % of a bootstrap distribution.
struct Interval {
  double low = 0, high = 0;
  bool contains(double x) const { return low <= x && x <= high; }
};

// The change that an intervention makes, on the same sequences. Loss: mean cross entropy per labeled
// position, nats; accuracy: share of labeled positions predicted correctly.
struct Effect {
  double loss_change = 0, accuracy_change = 0;
  Interval interval;  // of the loss
  Interval accuracy_interval;
};

// Michel, Levy and Neubig, "Are sixteen heads really better than one?", NeurIPS 2019, equation 2:
// E_x |<z_h(x), dL(x)/dz_h(x)>|, where x is a sequence, the inner product is over all of its positions, L(x)
// is its cross entropy summed over labeled positions, and E the mean over sequences.
struct Importance {
  double raw = 0;
  double normalized = 0;  // raw / l2 norm of the raw values of the layer, as in the paper; 0 if that is 0
};

struct HeadEffects {
  HeadId id;
  Effect zero;      // z_h replaced by 0
  Effect mean;      // z_h replaced by its mean at the position, over the sequences that have the position
  Effect resample;  // z_h replaced by its value at the position on another sequence of the same length
  Importance importance;
};

// The result after zero ablation of the `removed` least important heads, the last of which is `id`.
struct RemovalStep {
  std::int64_t removed = 0;
  std::optional<HeadId> id{};  // none before the first removal
  double loss = 0, accuracy = 0;
};

struct EffectsReport {
  EvalResult baseline;             // without an intervention, with the result of each sequence
  std::vector<HeadEffects> heads;  // by HeadId
  std::vector<RemovalStep> cumulative_ablation;
  // Sequences of unique length, which keep their own values in the resample ablation.
  std::int64_t unpaired = 0;
};

inline constexpr int kBootstrapDraws = 1000;

// Returns percentile intervals (Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13)
// of sum_i sums[k][i] / sum_i counts[i] for each k, where sequences i are drawn with replacement, the same
// draws for all k. Throws ShapeError when sizes differ or there is no sequence.
std::vector<Interval> bootstrap(const std::vector<std::vector<double>>& sums, std::span<const double> counts,
                                std::uint64_t seed);

Json to_json(const Interval&);     // [low, high]
Json to_json(const Effect&);       // {"loss_change", "accuracy_change", "interval", ...}
Json to_json(const HeadEffects&);  // {"zero", "mean", "resample"}, without the importance
Json to_json(const Importance&);   // {"raw", "normalized"}
Json to_json(const RemovalStep&);  // {"removed", "layer", "head", "loss", "accuracy"}

}  // namespace thimble
