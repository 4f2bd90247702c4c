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

// What is measured of a run, D. Zhang and Nanda, "Towards best practices of activation patching in language models",
// ICLR 2024, recommend the logit difference.
enum class PatchMeasure {
  logit_difference,  // the sum, over positions whose labels differ, of logit(label of the corrupted input) minus
                     // logit(label of the clean input)
  log_probability,  // where some pair's labels do not differ: minus the sum of the log-probabilities of the labels of the
                    // clean input, of those that can be known
};
std::string measure_text(PatchMeasure);  // "logit difference", "log-probability of the clean labels"

// The inputs of a report.
struct PatchedInputs {
  std::int64_t pairs = 1;
  PatchMeasure measure = PatchMeasure::logit_difference;
  std::string corruption = "resample";  // as PairChoice::corruption; "own": texts

  std::string text() const;  // "100 pairs of test sequences"
};

// The share of the measure that a patch moves, over the pairs that have what is patched:
//   effect = sum (D_patched - D_base) / sum (D_donor - D_base).
// The interval is that of mean_change over these pairs; none for one. NaN where their D do not favor the labels of their
// own input.
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
  PatchedInputs inputs;
  double difference = 0;  // what shares are of: D_corrupted - D_clean, the mean over pairs
  std::vector<std::string> clean, corrupted;  // tokens of one pair, or of its sources; empty for several
  std::vector<std::string> clean_labels, corrupted_labels;  // of that pair, in the order of positions
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
                                       const std::vector<double>& totals,
                                       PatchMeasure measure = PatchMeasure::logit_difference);

Json to_json(const PatchEffect&);    // {"effect", "pairs", "interval"}; without an interval for one pair
Json to_json(const PatchedInputs&);  // {"pairs", "inputs": text(), "corruption", "measure"}
Json to_json(
    const PatchingReport&);  // to_json(inputs) with "heads": [{"layer", "head", "noising": {...}, ...}]

}  // namespace thimble
