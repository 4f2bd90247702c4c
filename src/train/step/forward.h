// A forward pass over a batch, as training and evaluation share it: data, model, model input, loss.
#pragma once

#include <limits>
#include <memory>
#include <span>

#include "thimble/engine/model.h"
#include "thimble/train/config.h"
#include "thimble/train/data_record.h"
#include "thimble/train/dataset.h"
#include "thimble/train/results.h"
#include "train/step/eval_sums.h"

namespace thimble {

inline constexpr double kNoCap = std::numeric_limits<double>::infinity();

inline namespace THIMBLE_PRECISION {

// Returns the config's model for the data.
std::unique_ptr<Model> make_model(const ModelConfig&, const Dataset&);

// Returns the sequences of a batch, which must outlive the pass, as model input.
ModelInput model_input(const Batch&);

// Returns model input for the logits (R, V) of labeled positions only, whose labels are batch.row_labels.
ModelInput labeled_input(const Batch&);

// Returns the loss (1), summed over a batch's labeled positions with logits (R, V), and adds the results of
// the batch to the sums. `per_sequence`, unless empty, gets the result of each sequence, with the capped loss, and the
// sums get their spread.
Var add_loss(Var logits, const Batch&, Real label_smoothing, EvalSums&,
             std::span<SequenceResult> per_sequence = {}, double loss_cap = kNoCap);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
