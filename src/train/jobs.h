// Jobs of train.h, run.h and benchmark.h in one precision; train.cpp dispatches between the two.
#pragma once

#include "thimble/engine/real.h"
#include "thimble/train/benchmark.h"
#include "thimble/train/plan.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Benchmark run_benchmark(const Config& config, std::int64_t warmup, std::int64_t steps, Communicator& ranks);
EvalResult run_evaluation(const ModelSource& source, Split split, std::int64_t limit,
                          std::vector<Prediction>* predictions);
std::vector<GradcheckResult> run_model_check(const Config& config);
std::vector<GradcheckResult> run_op_checks(const std::string& only);
ModelPlan run_plan(const Config& config, const Batch& batch, const PlanOptions& options);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
