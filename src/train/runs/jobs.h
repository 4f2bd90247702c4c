// Jobs of train.h and run.h in one precision; train.cpp dispatches between the two.
#pragma once

#include "thimble/engine/real.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

EvalResult run_evaluation(const ModelSource& source, Split split, std::int64_t limit,
                          std::vector<Prediction>* predictions);
std::vector<GradcheckResult> run_model_check(const Config& config);
std::vector<GradcheckResult> run_op_checks(const std::string& only);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
