#include <charconv>

#include "inspect/scores/require_heads.h"
#include "thimble/inspect/timeline/checkpoint_series.h"
#include "thimble/inspect/timeline/head_log.h"
#include "thimble/inspect/trace/trace_memory.h"
#include "thimble/tensor/safetensors.h"
#include "thimble/train/run_files.h"

namespace thimble {

inline namespace f32 {
std::vector<SeriesStep> run_series(const ModelSource& model,
                                   const std::map<std::int64_t, std::filesystem::path>& checkpoints,
                                   std::int64_t examples);
}
namespace f64 {
std::vector<SeriesStep> run_series(const ModelSource& model,
                                   const std::map<std::int64_t, std::filesystem::path>& checkpoints,
                                   std::int64_t examples);
}

std::map<std::int64_t, std::filesystem::path> checkpoints_by_step(const std::filesystem::path& run) {
  std::map<std::int64_t, std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints")) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != ".safetensors" || path.filename() == "best.safetensors") continue;
    const SafetensorsFile file(path);
    require_run(file, run);
    const auto step = file.metadata().find("step");
    std::int64_t number = 0;
    if (step != file.metadata().end())
      std::from_chars(step->second.data(), step->second.data() + step->second.size(), number);
    if (number > 0) found[number] = path;
  }
  return found;
}

std::vector<SeriesStep> read_checkpoint_series(const ModelSource& model, std::int64_t examples) {
  if (model.run.empty() || !model.config.train.checkpoint_series) return {};
  require_heads(model.config.model);
  const auto checkpoints = checkpoints_by_step(model.run);
  MemoryEstimate reading = trace_memory(model.config, kLoggedSequences);
  reading.sequences += static_cast<double>(checkpoints.size() + 1) * trace_bytes(model.config, examples);
  require_memory(reading);
  const bool single = model.config.train.precision == Precision::float32;
  return single ? f32::run_series(model, checkpoints, examples)
                : f64::run_series(model, checkpoints, examples);
}

}  // namespace thimble
