#include "train/step/plan.h"

#include "thimble/engine/real.h"

namespace thimble {

inline namespace f32 {
ModelPlan run_plan(const Config& config, const Batch& batch, const PlanOptions& options);
}
namespace f64 {
ModelPlan run_plan(const Config& config, const Batch& batch, const PlanOptions& options);
}

ModelPlan plan_model(const Config& config, const Batch& batch, const PlanOptions& options) {
  const bool single = config.train.precision == Precision::float32;
  return single ? f32::run_plan(config, batch, options) : f64::run_plan(config, batch, options);
}

}  // namespace thimble
