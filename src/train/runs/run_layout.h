// What the reader and the writer of run directories share: names of files, and the comparison of metrics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "thimble/train/run_state.h"

namespace thimble {

inline const std::filesystem::path kRunCheckpoints = "checkpoints", kRunMetrics = "metrics.jsonl",
                                   kRunConfig = "config.yaml", kRunSummary = "summary.json";
inline constexpr std::string_view kRateKey = "train.optimizer.lr";  // may differ between checkpoints of a run
inline const std::string kFinal = "final.safetensors", kBest = "best.safetensors";

// Returns f(), with errors of files turned into CheckpointErrors.
template <class F>
decltype(auto) guarded(const F& f) {
  try {
    return f();
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  } catch (const std::filesystem::filesystem_error& e) {
    throw CheckpointError(fmt::format("{}: {}", e.path1().string(), system_message(e.code().value())));
  }
}

std::string step_name(std::int64_t step);
// Returns N of step-N.safetensors, or 0 for other names.
std::int64_t step_of(const std::filesystem::path& path);
// Returns the step-N.safetensors of a run, newest first; none without the folder.
std::vector<std::filesystem::path> step_files(const std::filesystem::path& run);
// Returns final.safetensors, the files of steps, and best.safetensors, as far as they are there.
std::vector<std::filesystem::path> checkpoint_files(const std::filesystem::path& run);
// Returns the first of NAME, NAME-2, ... that does not exist.
std::filesystem::path unused_name(const std::filesystem::path& name);

// How the lines of a metrics.jsonl compare with a mark.
enum class Fit { whole, missing, differs };

// What reading metrics.jsonl found.
struct MetricsScan {
  bool exists = false;
  std::int64_t lines = 0;       // but for blank ones, and the last if it is incomplete
  std::int64_t first_step = 0;  // of the first line
  std::string run;              // that the first line states; "": none
  std::size_t invalid = 0;      // number of the first line that is no object of step and split; 0: none
  Fit checkpoint = Fit::whole, end = Fit::whole;
  std::uint64_t bytes = 0;   // up to the end of the checkpoint's lines
  bool ends_in_line = true;  // of these bytes

  // Returns whether the file begins after a checkpoint of the step, so that they cannot be compared.
  bool begins_after(std::int64_t step) const { return lines > 0 && first_step > step; }
};

// Calls f(line) with each object in the file, and compares it with the marks at a checkpoint and at the end.
MetricsScan scan_metrics(const std::filesystem::path& file, const MetricsMark& checkpoint,
                         const MetricsMark& end, const std::function<void(const Json& line)>& f);

}  // namespace thimble
