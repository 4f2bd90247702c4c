#include "thimble/train/run.h"

#include <algorithm>
#include <charconv>

#include "thimble/config/differences.h"
#include "thimble/core/error.h"
#include "thimble/core/json.h"
#include "thimble/core/path.h"
#include "thimble/data/table.h"
#include "thimble/tensor/safetensors.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

const fs::path kCheckpoints = "checkpoints";
const fs::path kData = "data.json";
constexpr auto kReplace = Json::error_handler_t::replace;
constexpr std::size_t kKeptAtEnd = 1;  // checkpoints of steps, once training has ended
const std::string kFinal = "final.safetensors", kBest = "best.safetensors";

// Returns f(), with errors of files turned into CheckpointErrors.
template <class F>
auto guarded(const F& f) {
  try {
    return f();
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  } catch (const fs::filesystem_error& e) {
    throw CheckpointError(fmt::format("{}: {}", e.path1().string(), e.code().message()));
  }
}

std::string step_name(std::int64_t step) { return fmt::format("step-{}.safetensors", step); }

// Returns N of step-N.safetensors, or 0 for other names.
std::int64_t step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  std::int64_t step = 0;
  if (name.starts_with("step-")) std::from_chars(name.data() + 5, name.data() + name.size(), step);
  return name == step_name(step) ? step : 0;
}

// Returns the step-N.safetensors of a directory, newest first.
std::vector<fs::path> step_files(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory))
    if (step_of(entry.path()) > 0) found.push_back(entry.path());
  std::ranges::sort(found, std::greater(), step_of);
  return found;
}

// Returns the step-N.safetensors that pruning removes, see RunWriter::prune.
std::vector<fs::path> surplus(const fs::path& checkpoints, std::size_t keep, bool series) {
  std::vector<fs::path> files = step_files(checkpoints);
  files.erase(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(std::min(keep, files.size())));
  if (series) std::erase_if(files, [](const fs::path& path) { return in_series(step_of(path)); });
  return files;
}

// Returns the checkpoints of a run as --checkpoint names them: "best, final, 300, 200".
std::string checkpoint_names(const fs::path& directory) {
  std::vector<std::string> names;
  for (const char* name : {"best", "final"})
    if (fs::exists(directory / fmt::format("{}.safetensors", name))) names.emplace_back(name);
  for (const fs::path& path : step_files(directory)) names.push_back(std::to_string(step_of(path)));
  return fmt::format("{}", fmt::join(names, ", "));
}

bool is_leftover(const fs::path& path) {
  return path.filename() == DirectoryLock::kFile || path.filename() == kCheckpoints ||
         path.filename() == kData || path.extension() == ".tmp";
}

// Returns whether the directory is empty except for its lock, or with `resume` for what a run creates before
// its first checkpoint.
bool is_unused(const fs::path& directory, bool resume) {
  return std::ranges::all_of(fs::directory_iterator(directory), [&](const auto& entry) {
    return resume ? is_leftover(entry.path()) : entry.path().filename() == DirectoryLock::kFile;
  });
}

// Returns the record of a run's data, not known() if the directory has no data.json.
DataRecord read_record(const fs::path& directory) {
  const fs::path file = directory / kData;
  if (!fs::exists(file)) return {};
  try {
    return parse_record(read_file(file), directory);
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: {}", file.string(), e.what()));
  }
}

// Prunes a run that was killed between its last checkpoint and pruning. Does nothing if the run is locked or
// cannot be written.
void prune_finished(const fs::path& directory) {
  const fs::path checkpoints = directory / kCheckpoints;
  try {
    if (!fs::exists(checkpoints / kFinal) || surplus(checkpoints, kKeptAtEnd, false).empty()) return;
    const Config config = load_config((directory / "config.yaml").string());
    const std::vector<fs::path> files = surplus(checkpoints, kKeptAtEnd, config.train.checkpoint_series);
    if (files.empty()) return;
    const DirectoryLock lock(directory);
    if (!fs::exists(checkpoints / kFinal)) return;  // resumed meanwhile
    for (const fs::path& path : files) fs::remove(path);
  } catch (const std::exception&) {
  }
}

// Returns the source with its changes since training.
ModelSource source_of(Config config, const fs::path& weights, const fs::path& run,
                      const DataRecord& trained) {
  ModelSource source{std::move(config), weights, run};
  if (source.config.task.table != nullptr)
    source.changes = changed_files(trained, source.config.task.table->sources());
  return source;
}

// Throws ConfigError unless the run in the directory can be resumed with the config.
void require_same(const fs::path& directory, const Config& config) {
  const DataRecord trained = read_record(directory);
  const Config there = load_config((directory / "config.yaml").string());
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

}  // namespace

DataRecord record_of(const Config& config) {
  return record_of(config.task, layout_of(config.model), config.model.max_length);
}

std::vector<std::string> changed_data(const fs::path& directory, const Config& config) {
  const DataRecord trained = read_record(directory);
  if (!trained.known() || config.task.table == nullptr) return {};
  return differing_files(trained.files, config.task.table->sources());
}

ModelSource open_run(const fs::path& directory, const std::vector<std::string>& overrides,
                     const std::string& checkpoint) {
  return guarded([&]() -> ModelSource {
    require<CheckpointError>(fs::is_directory(directory),
                             "{}: no such run directory; create one with thimble train", directory.string());
    const fs::path checkpoints = directory / kCheckpoints;
    require<CheckpointError>(fs::exists(directory / "config.yaml") && fs::is_directory(checkpoints),
                             "{}: not a run: config.yaml or checkpoints is missing", directory.string());
    const DataRecord trained = read_record(directory);
    prune_finished(directory);
    fs::path weights = checkpoints / kFinal;
    if (!checkpoint.empty()) {
      const bool named = checkpoint == "best" || checkpoint == "final";
      weights = checkpoints / fmt::format("{}{}.safetensors", named ? "" : "step-", checkpoint);
      require<CheckpointError>(fs::exists(weights), "{}: no such checkpoint; the run has {}",
                               weights.string(), checkpoint_names(checkpoints));
    } else if (!fs::exists(weights)) {
      const std::vector<fs::path> steps = step_files(checkpoints);
      require<CheckpointError>(!steps.empty(), "{}: the run has no checkpoint yet", directory.string());
      weights = steps.front();
    }
    return source_of(open_config((directory / "config.yaml").string(), overrides, &trained), weights,
                     directory, trained);
  });
}

ModelSource open_weights(const fs::path& weights, const std::string& config_file,
                         const std::vector<std::string>& overrides) {
  const SafetensorsFile file(weights);
  const auto text = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  DataRecord trained;
  try {
    if (!text("data").empty()) trained = parse_record(text("data"));
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: {}", weights.string(), e.what()));
  }
  if (!config_file.empty())
    return source_of(open_config(config_file, overrides, &trained), weights, {}, trained);
  require<CheckpointError>(
      !text("config").empty(),
      "{}: no config in the metadata; give the config of the model as well (--config FILE)",
      weights.string());
  return source_of(open_config_text(text("config"), weights.string(), overrides, &trained), weights, {},
                   trained);
}

fs::path run_directory(const fs::path& config_file, const Config& config) {
  return path_under_runs(config_file.stem().string(), to_yaml(config));
}

fs::path unused_run_directory(const fs::path& config_file, const Config& config) {
  const fs::path first = run_directory(config_file, config);
  fs::path free = first;
  for (int n = 2; fs::exists(free); ++n) free = fmt::format("{}-{}", first.string(), n);
  return free;
}

RunWriter::RunWriter(const fs::path& directory, const Config& config, bool resume) : directory_(directory) {
  const DataRecord data = record_of(config);
  guarded([&] {
    require_utf8(directory);
    const auto require_unused = [&] {
      require<CheckpointError>(
          fs::is_directory(directory) && is_unused(directory, resume),
          "{}: exists and is not an empty directory; choose another with --out{}", directory.string(),
          fs::exists(directory / "config.yaml") ? ", or resume this run with --resume" : "");
    };
    const auto continues = [&] { return resume && fs::exists(directory / "config.yaml"); };
    if (fs::exists(directory) && !continues()) require_unused();
    fs::create_directories(directory);
    lock_.emplace(directory);
    if (continues()) {
      require_same(directory, config);
    } else {
      require_unused();
    }
    fs::create_directories(directory / kCheckpoints);
    remove_temporary_files(directory);
    remove_temporary_files(directory / kCheckpoints);
    write_file(directory / kData, json_text(to_json(data, directory), 2, kReplace) + "\n");
    write_file(directory / "config.yaml", to_yaml(config));
  });
}

std::vector<fs::path> RunWriter::checkpoints() const {
  return guarded([&] {
    std::vector<fs::path> found = step_files(directory_ / kCheckpoints);
    if (fs::exists(final_path())) found.insert(found.begin(), final_path());
    return found;
  });
}

void RunWriter::set_aside(const fs::path& damaged) {
  guarded([&] { fs::rename(damaged, damaged.string() + ".damaged"); });
}

void RunWriter::require_metrics(std::uint64_t bytes) const {
  const fs::path path = directory_ / "metrics.jsonl";
  std::error_code missing;
  const std::uint64_t there = fs::exists(path) ? fs::file_size(path, missing) : 0;
  require<CheckpointError>(there >= bytes, "{}: has {} bytes, but {} were written; it is truncated",
                           path.string(), there, bytes);
}

void RunWriter::start_metrics(std::uint64_t bytes) {
  guarded([&] { metrics_.emplace(directory_ / "metrics.jsonl", bytes); });
}

void RunWriter::metrics(const Json& line) {
  guarded([&] { metrics_->append(json_text(line) + '\n'); });
}

std::uint64_t RunWriter::sync_metrics() {
  return guarded([&] {
    metrics_->sync();
    return metrics_->size();
  });
}

fs::path RunWriter::step_path(std::int64_t step) const { return directory_ / kCheckpoints / step_name(step); }
fs::path RunWriter::best_path() const { return directory_ / kCheckpoints / kBest; }
fs::path RunWriter::final_path() const { return directory_ / kCheckpoints / kFinal; }

void RunWriter::reopen(std::int64_t final_step) {
  guarded([&] {
    fs::remove(directory_ / "summary.json");
    if (fs::exists(final_path())) fs::rename(final_path(), step_path(final_step));
  });
}

void RunWriter::prune(bool ended, bool series) {
  guarded([&] {
    for (const fs::path& path : surplus(directory_ / kCheckpoints, ended ? kKeptAtEnd : 2, series))
      fs::remove(path);
  });
}

void RunWriter::finish(const TrainResult& result) {
  guarded([&] { write_file(directory_ / "summary.json", json_text(to_json(result), 2) + "\n"); });
}

bool in_series(std::int64_t step) {
  if (step < 1) return false;
  while (step % 10 == 0) step /= 10;
  return step == 1 || step == 2 || step == 5;
}

bool is_logging_step(std::int64_t step) {
  constexpr std::int64_t kR20[] = {1000, 1120, 1250, 1400, 1600, 1800, 2000, 2240, 2500, 2800,
                                   3150, 3550, 4000, 4500, 5000, 5600, 6300, 7100, 8000, 9000};
  if (step <= 0) return step == 0;
  std::int64_t decade = 1;
  while (step / decade >= 10) decade *= 10;
  return std::ranges::any_of(kR20, [&](std::int64_t number) { return number * decade / 1000 == step; });
}

}  // namespace thimble
