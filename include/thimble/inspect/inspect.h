// The report on the attention heads of a trained model: what each attends to on test sequences, compared with
// chance and initialization, and what ablating it costs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thimble/inspect/cells.h"
#include "thimble/inspect/checkpoint_series.h"
#include "thimble/inspect/circuits.h"
#include "thimble/inspect/effects.h"
#include "thimble/inspect/forward_trace.h"
#include "thimble/inspect/label.h"
#include "thimble/inspect/lens_names.h"
#include "thimble/inspect/scores.h"
#include "thimble/inspect/timeline.h"
#include "thimble/inspect/verdict.h"
#include "thimble/train/json.h"
#include "thimble/train/listing.h"

namespace thimble {

struct ModelSource;

struct HeadReport {
  std::vector<HeadScore> scores;  // with at_init
  PositionMeans mean_weights;     // (queries, keys)
  HeadEffects effects;            // with the head's id
  HeadCircuits circuits;
  std::optional<CellEffect> cells{};  // of its pattern, if it was tested
  Label label;
  std::vector<HypothesisTest> hypotheses{};  // of InspectOptions
};

struct InspectReport {
  OpenConfig config;
  std::string run;                            // the name of its directory; "": weights made elsewhere
  std::string hypotheses{};                   // the name of their file; "": test sequences were analyzed
  Names tokens;                               // the vocabulary
  std::string weights_hash;                   // as in the summary of a run
  std::int64_t length = 0;                    // T
  std::int64_t source_length = 0;             // S; 0 in an encoder-only model
  EvalResult baseline;                        // on the analyzed sequences
  std::vector<PositionLoss> position_losses;  // by position on the same sequences; of task text alone
  EffectScale scale;
  std::int64_t unpaired = 0;  // see EffectsReport
  std::vector<HeadReport> heads;
  std::vector<RemovalStep> cumulative_ablation;
  JointReport joint;
  Attribution attribution;
  PositionMeans rollout;  // (T, T); empty for an encoder-decoder
  // By attention layer, over how many sequences the cells of mean weights are means; those of the first also
  // apply to the rollout. See PositionSums::counts.
  std::vector<std::vector<std::int64_t>> mean_counts;
  std::vector<LensResult> logit_lens;  // by depth; empty for a model without one
  std::vector<ForwardTrace> examples;
  Timeline timeline;               // of the model's run
  std::vector<SeriesStep> series;  // of the run's checkpoints, for the page

  // Return the largest number of queries and of keys of an attention layer.
  std::int64_t queries(const AttentionLayer& l) const { return l.queries_source ? source_length : length; }
  std::int64_t keys(const AttentionLayer& l) const { return l.keys_source ? source_length : length; }
};

// How many examples are kept at each checkpoint.
inline constexpr std::int64_t kSeriesExamples = 4;

struct InspectOptions {
  std::int64_t sequences = 1000;  // the first of the test split
  std::int64_t examples = 16;     // of these, kept with all their attention weights
  bool page = false;              // whether it becomes a page, with the checkpoints of the run
  bool json = false;              // whether it becomes JSON text, which takes memory
  double smallest_effect = kSmallestEffect;
  // A file of hypotheses, see hypotheses_source(): its rows are analyzed in place of test sequences, and each is tested for
  // each head. "": none.
  std::string hypotheses{};
};

inline constexpr std::int64_t kVariedSequences =
    300;  // examples of Split::varied that scores are measured on

// Analyzes the heads, with attention weights as the model uses them in evaluation mode, after the mask and
// the softmax. at_init is computed from the initial weights of the config's seed. Throws CheckpointError when
// the weights do not match the config, DataError when there are no test sequences and for a wrong file of hypotheses, see
// hypotheses_source(), and NumericError when a
// number that must be finite is not.
InspectReport inspect(const ModelSource& trained, const InspectOptions& options);

// The JSON of an encoder-decoder has "source_length" and "attentions" (forward_trace.h); the "layer" of a
// head is an index into "attentions", and its "attention" is the name there.
Json to_json(const InspectReport&);

// Ablates a set of heads together, on the first test sequences. Throws as inspect does.
AblationReport ablate(const ModelSource& model, std::span<const HeadId> heads, std::int64_t sequences);

}  // namespace thimble
