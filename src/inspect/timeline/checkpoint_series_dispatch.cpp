#include "inspect/scores/require_heads.h"
#include "inspect/timeline/head_log.h"
#include "thimble/inspect/checkpoint_series.h"
#include "thimble/train/run.h"

namespace thimble {

inline namespace f32 {
std::vector<SeriesStep> run_series(
    const ModelSource& model,
    const std::map<std::int64_t, std::shared_ptr<const SafetensorsFile>>& checkpoints, std::int64_t examples);
}
namespace f64 {
std::vector<SeriesStep> run_series(
    const ModelSource& model,
    const std::map<std::int64_t, std::shared_ptr<const SafetensorsFile>>& checkpoints, std::int64_t examples);
}

std::vector<SeriesStep> read_checkpoint_series(const ModelSource& model, std::int64_t examples,
                                               std::vector<std::string>& remarks) {
  if (model.run.empty() || !model.config.train.checkpoint_series) return {};
  require_heads(model.config.model);
  const auto checkpoints = model.run.series(model.file, remarks);
  const bool single = model.config.train.precision == Precision::float32;
  return single ? f32::run_series(model, checkpoints, examples)
                : f64::run_series(model, checkpoints, examples);
}

}  // namespace thimble
