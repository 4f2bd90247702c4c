// What the reader and the writer of run directories share: names of files, and lines of metrics.
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
inline constexpr std::string_view kMetricsStart = R"({"step":)";    // of each line that thimble writes
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
// Returns them, but for one, as --checkpoint names them: "final, 300, 200, best", or "none".
std::string checkpoint_names(const std::filesystem::path& run, const std::filesystem::path& but = "");
// Returns the first of NAME, NAME-2, ... that does not exist.
std::filesystem::path unused_name(const std::filesystem::path& name);

// Returns the state in the header of a checkpoint; an empty one if it is damaged or cannot be read.
RunState header_state(const std::filesystem::path& path);
// Returns that the best checkpoint, in that state, is not the one that the newest knows of; "" if it is. A later one was
// saved just before a kill.
std::string other_best(const std::filesystem::path& best, const RunState& found, const RunState& newest);

// A line of a metrics.jsonl.
struct MetricsLine {
  Json values;             // an object of step and split; null: the line is none
  std::size_t number = 0;  // from 1
  std::uint64_t end = 0;   // bytes of the file up to its end
  bool is_whole = true;    // whether a line break ends it

  // Returns the run that the line names, as the first of a file does; "" if it names none.
  std::string run() const;
};

// Calls f with each line that is not blank, until it returns false. Returns a last line that was cut, which does not count.
std::string read_lines(const std::filesystem::path& file, const std::function<bool(const MetricsLine&)>& f);

// Returns the object of a summary; an empty one where it is none, damaged or missing.
Json object_in(const std::filesystem::path& summary);

}  // namespace thimble
