// Jobs of train.h in the precision R, float or double.
#pragma once

#include "thimble/train/run.h"
#include "thimble/train/train.h"

namespace thimble {

// Does what train() does, without comparing the options of ranks.
template <class R>
TrainResult run_training(const OpenConfig& config, const TrainOptions& options);

template <class R>
EvalResult run_evaluation(const ModelSource& source, Split split, std::int64_t limit,
                          std::vector<Prediction>* predictions);
template <class R>
std::vector<GradcheckResult> run_model_check(const OpenConfig& config);
template <class R>
std::vector<GradcheckResult> run_op_checks(const std::string& only);

}  // namespace thimble
