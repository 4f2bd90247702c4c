// Compiled once: hands each job to the library of its precision, unless its memory would not fit.
#include <algorithm>

#include "thimble/train/benchmark.h"
#include "thimble/train/cost.h"
#include "thimble/train/plan.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"

namespace thimble {

#define THIMBLE_JOBS                                                                      \
  TrainResult run_training(const Config& config, const TrainOptions& options);            \
  Benchmark run_benchmark(const Config& config, std::int64_t warmup, std::int64_t steps); \
  EvalResult run_evaluation(const ModelSource& source, Split split, std::int64_t limit);  \
  std::vector<GradcheckResult> run_model_check(const Config& config);                     \
  std::vector<GradcheckResult> run_op_checks(const std::string& only);                    \
  ModelPlan run_plan(const Config& config, const Batch& batch, const PlanOptions& options);

namespace f32 {
THIMBLE_JOBS
}
namespace f64 {
THIMBLE_JOBS
}

namespace {
bool single(const Config& config) { return config.train.precision == Precision::float32; }
}  // namespace

TrainResult train(const Config& config, const TrainOptions& options) {
  require_memory(Job::training, config);
  return single(config) ? f32::run_training(config, options) : f64::run_training(config, options);
}

Benchmark benchmark(const Config& config, std::int64_t warmup, std::int64_t steps) {
  require_memory(Job::training, config);
  return single(config) ? f32::run_benchmark(config, warmup, steps)
                        : f64::run_benchmark(config, warmup, steps);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

EvalResult evaluate(const ModelSource& source, Split split, std::int64_t limit) {
  require_memory(Job::training, source.config);
  return single(source.config) ? f32::run_evaluation(source, split, limit)
                               : f64::run_evaluation(source, split, limit);
}

std::vector<GradcheckResult> check_model(const Config& config) {
  require_memory(Job::model_check, config);
  return f64::run_model_check(config);
}

ModelPlan plan_model(const Config& config, const Batch& batch, const PlanOptions& options) {
  return single(config) ? f32::run_plan(config, batch, options) : f64::run_plan(config, batch, options);
}

std::vector<GradcheckResult> check_ops(const std::string& only) { return f64::run_op_checks(only); }

}  // namespace thimble
