#include <algorithm>

#include "thimble/config/differences.h"
#include "thimble/core/path.h"
#include "thimble/data/table.h"
#include "thimble/train/run.h"
#include "train/run_layout.h"
#include "train/run_state.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

constexpr auto kReplace = Json::error_handler_t::replace;

bool is_leftover(const fs::path& path) {
  return path.filename() == DirectoryLock::kFile || path.filename() == kRunCheckpoints ||
         path.filename() == kRunData || path.extension() == ".tmp";
}

// Returns whether the directory is empty except for its lock, or with `resume` for what a run creates before
// its first checkpoint.
bool is_unused(const fs::path& directory, bool resume) {
  return std::ranges::all_of(fs::directory_iterator(directory), [&](const auto& entry) {
    return resume ? is_leftover(entry.path()) : entry.path().filename() == DirectoryLock::kFile;
  });
}

// Throws ConfigError unless the run in the directory can be resumed with the config.
void require_same(const fs::path& directory, const Config& config) {
  const DataRecord trained = read_record(directory);
  const Config there = load_config((directory / kRunConfig).string());
  std::string lines;
  for (const Difference& difference : differences(there, config, "the run", "this config"))
    // Paths of data files may change only if the record of their content is known.
    if (!difference.may_change || (!trained.known() && difference.key.starts_with("task.")))
      lines += "\n  " + difference.text;
  require<ConfigError>(lines.empty(),
                       "{}: holds a run with another config:{}\nuse the same values, or start a new run",
                       directory.string(), lines);
  for (const std::string& difference : changed_data(directory, config)) lines += "\n  " + difference;
  require<ConfigError>(
      lines.empty(),
      "{}: the training data has changed since the run began:{}\nrestore the files, or start a new run",
      directory.string(), lines);
}

// Writes the file unless it has that content.
void update_file(const fs::path& path, const std::string& content) {
  if (!fs::exists(path) || read_file(path) != content) write_file(path, content);
}

}  // namespace

RunWriter::RunWriter(const fs::path& directory, const Config& config, bool resume)
    : directory_(directory), config_(config) {
  guarded([&] {
    require_utf8(directory);
    const auto require_unused = [&] {
      require<CheckpointError>(
          fs::is_directory(directory) && is_unused(directory, resume),
          "{}: exists and is not an empty directory; choose another with --out{}", directory.string(),
          fs::exists(directory / kRunConfig) ? ", or resume this run with --resume" : "");
    };
    const auto continues = [&] { return resume && fs::exists(directory / kRunConfig); };
    if (fs::exists(directory) && !continues()) require_unused();
    fs::create_directories(directory);
    lock_.emplace(directory);
    if (continues()) {
      require_same(directory, config);
    } else {
      require_unused();
    }
    fs::create_directories(directory / kRunCheckpoints);
    require_writable(step_path(0));
  });
}

void RunWriter::start(const RunState& state, const std::vector<fs::path>& damaged) {
  guarded([&] {
    const fs::path metrics = directory_ / kRunMetrics;
    // Nothing but the first line says whose metrics they are where no checkpoint is left.
    if (state.step == 0 && fs::exists(metrics)) {
      const std::string text = read_file(metrics);
      const std::size_t end = text.find('\n');
      require<CheckpointError>(end == text.npos || MetricsCheck(state.run).accept(text.substr(0, end)),
                               "{}: belongs to a run with another config or other data; start a new run",
                               metrics.string());
    }
    // Before anything of the run changes: one may be read-only, or a link.
    for (const fs::path& path : {best_path(), final_path()}) {
      if (path == final_path() && fs::exists(path)) continue;
      const NewFile probe(path);
    }
    remove_temporary_files(directory_);
    remove_temporary_files(directory_ / kRunCheckpoints);
    Json data{{"format", "thimble 3"}};
    data.update(to_json(record_of(config_), directory_));
    update_file(directory_ / kRunData, json_text(data, 2, kReplace) + "\n");
    update_file(directory_ / kRunConfig, to_yaml(config_));
    metrics_.emplace(metrics, state.metrics_bytes);
    check_ = MetricsCheck(state.metrics_bytes > 0 ? state.metrics_check : state.run);
    for (const fs::path& path : damaged) fs::rename(path, unused_name(path.string() + ".damaged"));
    identity_ = state.run;
  });
}

std::vector<fs::path> RunWriter::checkpoints() const {
  return guarded([&] {
    std::vector<fs::path> found = step_files(directory_ / kRunCheckpoints);
    if (fs::exists(final_path())) found.insert(found.begin(), final_path());
    if (fs::exists(best_path())) found.push_back(best_path());
    return found;
  });
}

void RunWriter::require_metrics(const RunState& state) const {
  const fs::path path = directory_ / kRunMetrics;
  const std::string text = guarded([&] { return fs::exists(path) ? read_file(path) : ""; });
  require<CheckpointError>(text.size() >= state.metrics_bytes,
                           "{}: has {} bytes, but {} were written; it is truncated: restore the file, or "
                           "start a new run",
                           path.string(), text.size(), state.metrics_bytes);
  if (state.run.empty()) return;
  MetricsCheck check(state.run);
  bool valid = true;
  std::size_t begin = 0;
  while (valid && begin < state.metrics_bytes) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    valid = check.accept(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  valid = valid && begin == state.metrics_bytes;  // another execution has other times, of other lengths
  require<CheckpointError>(valid && check.value() == state.metrics_check,
                           "{}: was changed, or belongs to another run; restore the file, or start a new run",
                           path.string());
}

void RunWriter::metrics(const Json& line, double seconds) {
  guarded([&] { metrics_->append(check_.line(line, seconds)); });
}

void RunWriter::sync_metrics(RunState& state) {
  guarded([&] { metrics_->sync(); });
  state.metrics_bytes = metrics_->size();
  state.metrics_check = check_.value();
}

fs::path RunWriter::step_path(std::int64_t step) const {
  return directory_ / kRunCheckpoints / step_name(step);
}
fs::path RunWriter::best_path() const { return directory_ / kRunCheckpoints / kBest; }
fs::path RunWriter::final_path() const { return directory_ / kRunCheckpoints / kFinal; }

void RunWriter::reopen(std::int64_t final_step) {
  guarded([&] {
    fs::remove(directory_ / kRunSummary);
    if (fs::exists(final_path())) fs::rename(final_path(), step_path(final_step));
  });
}

void RunWriter::prune(bool ended, bool series) {
  guarded([&] {
    for (const fs::path& path : surplus(directory_ / kRunCheckpoints, ended ? kKeptAtEnd : 2, series))
      fs::remove(path);
  });
}

void RunWriter::finish(const TrainResult& result) {
  guarded([&] {
    metrics_->sync();
    const Json summary = summary_json(to_json(result), identity_, metrics_->size(), check_.value());
    write_file(directory_ / kRunSummary, json_text(summary, 2) + "\n");
  });
}

}  // namespace thimble
