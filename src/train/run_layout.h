// What the sources of run directories share: names of files, and lists of checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "thimble/core/error.h"
#include "thimble/data/data_record.h"

namespace thimble {

inline const std::filesystem::path kRunCheckpoints = "checkpoints", kRunData = kDataRecord,
                                   kRunMetrics = "metrics.jsonl", kRunConfig = "config.yaml",
                                   kRunSummary = "summary.json", kRunChanges = "changes.json";
inline const std::string kFinal = "final.safetensors", kBest = "best.safetensors";
inline constexpr std::size_t kKeptAtEnd = 1;  // checkpoints of steps, once training has ended

// Returns f(), with errors of files turned into CheckpointErrors.
template <class F>
auto guarded(const F& f) {
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
// Returns the step-N.safetensors of a directory, newest first.
std::vector<std::filesystem::path> step_files(const std::filesystem::path& directory);
// Returns final.safetensors of the directory, or the newest step-N.safetensors.
std::optional<std::filesystem::path> last_checkpoint(const std::filesystem::path& checkpoints);
// Returns the step-N.safetensors that pruning removes, see RunWriter::prune.
std::vector<std::filesystem::path> surplus(const std::filesystem::path& checkpoints, std::size_t keep,
                                           bool series);
// Returns the first of NAME, NAME-2, ... that does not exist.
std::filesystem::path unused_name(const std::filesystem::path& name);
// Returns the record of a run's data, not known() if the directory has no data.json.
DataRecord read_record(const std::filesystem::path& directory);

}  // namespace thimble
