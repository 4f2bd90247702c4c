// Results of activation patching.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thimble/engine/attention_layer.h"
#include "thimble/inspect/effects.h"
#include "thimble/train/json.h"

namespace thimble {

// The share of the logit difference that a patch moves, over the pairs that have what is patched:
//   effect = sum (D_patched - D_base) / sum (D_donor - D_base),
// with D of a run the sum, over positions whose labels differ, of logit(label of the corrupted input) minus
// logit(label of the clean input). Zhang and Nanda, "Towards best practices of activation patching in language
// models", ICLR 2024, recommend the logit difference. The interval is that of mean_change over these pairs;
// none for one. NaN where their D do not favor the labels of their own input.
struct PatchEffect {
  double effect = 0;
  std::optional<Interval> interval{};
  std::int64_t pairs = 0;
};

// The effects of patching z_h of the donor input into a run on the base input.
struct HeadPatch {
  PatchEffect all;              // at all positions
  std::vector<PatchEffect> at;  // at one position, over the pairs that have it
};

// Activation patching of every head. Noising: the base is the clean input and the donor the corrupted one, and
// the effect is the share of the behavior that is lost. Denoising: the other way round, and the effect is the
// share that is restored.
struct PatchingReport {
  std::int64_t pairs = 1;
  std::vector<std::string> clean, corrupted;  // tokens of one pair, or of its sources; empty for several
  struct Head {
    HeadId id;
    std::string attention;  // name of its attention layer, "cross.0"; empty in an encoder-only model
    HeadPatch noising, denoising;
  };
  std::vector<Head> heads;  // by HeadId
};

// Returns effects for several patches: sums[k][i] is D_patched - D_base of patch k and pair i, totals[i] is
// D_donor - D_base; a pair whose sum is NaN does not have what is patched. Throws DataError when the totals do not sum to a positive number, unless there is one
// pair, whose total must not be 0.
std::vector<PatchEffect> patch_effects(const std::vector<std::vector<double>>& sums,
                                       const std::vector<double>& totals);

Json to_json(const PatchEffect&);     // {"effect", "pairs", "interval"}; without an interval for one pair
Json to_json(const PatchingReport&);  // {"pairs", "heads": [{"layer", "head", "noising": {...}, ...}]}

}  // namespace thimble
