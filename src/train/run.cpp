#include "thimble/train/run.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "thimble/core/error.h"
#include "thimble/core/json.h"
#include "thimble/core/path.h"
#include "thimble/data/data_paths.h"
#include "thimble/data/table.h"
#include "thimble/tensor/safetensors.h"
#include "thimble/train/run_files.h"
#include "thimble/train/run_name.h"
#include "train/run_layout.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

// Returns the checkpoints of a run as --checkpoint names them: "best, final, 300, 200".
std::string checkpoint_names(const fs::path& directory) {
  std::vector<std::string> names;
  for (const char* name : {"best", "final"})
    if (fs::exists(directory / fmt::format("{}.safetensors", name))) names.emplace_back(name);
  for (const fs::path& path : step_files(directory)) names.push_back(std::to_string(step_of(path)));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Prunes a run that was killed between its last checkpoint and pruning. Does nothing if the run is locked or
// cannot be written, or if one of its checkpoints is not what its name says.
void prune_finished(const fs::path& directory) {
  const fs::path checkpoints = directory / kRunCheckpoints;
  try {
    if (!fs::exists(checkpoints / kFinal) || surplus(checkpoints, kKeptAtEnd, false).empty()) return;
    const DataRecord any;
    const SafetensorsFile last(checkpoints / kFinal);
    require_run(last, directory);
    const Config config = parse_config(last.metadata().at("config"), last.path(), {}, &any);
    const std::vector<fs::path> files = surplus(checkpoints, kKeptAtEnd, config.train.checkpoint_series);
    if (files.empty()) return;
    const DirectoryLock lock(directory);
    if (!fs::exists(checkpoints / kFinal)) return;  // resumed meanwhile
    for (const fs::path& path : step_files(checkpoints)) require_run(SafetensorsFile(path), directory);
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

// Adds a line for each data file that is missing or another one than in training, though no override names it.
ModelSource with_other_files(ModelSource source, const DataRecord& trained,
                             const std::vector<std::string>& overrides) {
  if (source.config.task.table == nullptr) return source;
  const std::vector<DataFile>& now = source.config.task.table->sources();
  for (const DataFile& before : trained.files) {
    const auto file = std::ranges::find(now, before.key, &DataFile::key);
    const std::string key = fmt::format("task.{}", before.key);
    const bool is_given =
        std::ranges::any_of(overrides, [&](const std::string& text) { return text.starts_with(key + "="); });
    const bool is_same =
        file != now.end() && !file->hash.empty() && (file->path == before.path || file->path == before.moved);
    if (is_given || is_same) continue;
    const std::vector<DataFile> there = file == now.end() ? std::vector<DataFile>() : std::vector{*file};
    std::ranges::copy(differing_files({before}, there), std::back_inserter(source.changes));
  }
  return source;
}

}  // namespace

std::string step_name(std::int64_t step) { return fmt::format("step-{}.safetensors", step); }

std::int64_t step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  std::int64_t step = 0;
  if (name.starts_with("step-")) std::from_chars(name.data() + 5, name.data() + name.size(), step);
  return name == step_name(step) ? step : 0;
}

std::vector<fs::path> step_files(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory))
    if (step_of(entry.path()) > 0) found.push_back(entry.path());
  std::ranges::sort(found, std::greater(), step_of);
  return found;
}

std::vector<fs::path> surplus(const fs::path& checkpoints, std::size_t keep, bool series) {
  std::vector<fs::path> files = step_files(checkpoints);
  files.erase(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(std::min(keep, files.size())));
  if (series) std::erase_if(files, [](const fs::path& path) { return in_series(step_of(path)); });
  return files;
}

fs::path unused_name(const fs::path& name) {
  fs::path free = name;
  for (int n = 2; fs::exists(free); ++n) free = fmt::format("{}-{}", name.string(), n);
  return free;
}

DataRecord read_record(const fs::path& directory) {
  const fs::path file = directory / kRunData;
  if (!fs::exists(file)) return {};
  try {
    return parse_record(read_file(file), directory);
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: {}", file.string(), e.what()));
  }
}

std::optional<fs::path> last_checkpoint(const fs::path& checkpoints) {
  if (fs::exists(checkpoints / kFinal)) return checkpoints / kFinal;
  const std::vector<fs::path> steps = step_files(checkpoints);
  return steps.empty() ? std::nullopt : std::optional(steps.front());
}

std::optional<fs::path> newest_checkpoint(const fs::path& run) {
  const fs::path checkpoints = run / kRunCheckpoints, best = checkpoints / kBest;
  if (!fs::is_directory(checkpoints)) return std::nullopt;
  std::optional<fs::path> newest = last_checkpoint(checkpoints);
  if (!newest && fs::exists(best)) newest = best;
  require<CheckpointError>(!newest || newest->filename() == kFinal || !fs::exists(run / kRunSummary),
                           "{}: missing, though training has ended; restore the file, name another with "
                           "--checkpoint, or resume the run",
                           (checkpoints / kFinal).string());
  return newest;
}

DataRecord record_of(const Config& config) {
  return record_of(config.task, layout_of(config.model), config.model.max_length);
}

std::vector<std::string> changed_data(const fs::path& directory, const Config& config) {
  const DataRecord trained = read_record(directory);
  if (!trained.known() || config.task.table == nullptr) return {};
  std::vector<std::string> lines = differing_files(trained.files, config.task.table->sources());
  if (const std::string mismatch = split_rule_mismatch(trained); !mismatch.empty()) lines.push_back(mismatch);
  return lines;
}

ModelSource open_run(const fs::path& directory, const std::vector<std::string>& overrides,
                     const std::string& checkpoint) {
  return guarded([&]() -> ModelSource {
    require<CheckpointError>(fs::is_directory(directory),
                             "{}: no such run directory; create one with thimble train", directory.string());
    const fs::path checkpoints = directory / kRunCheckpoints;
    require<CheckpointError>(fs::exists(directory / kRunConfig) && fs::is_directory(checkpoints),
                             "{}: not a run: config.yaml or checkpoints is missing", directory.string());
    const DataRecord trained = read_record(directory);
    fs::path weights;
    if (!checkpoint.empty()) {
      const bool named = checkpoint == "best" || checkpoint == "final";
      weights = checkpoints / fmt::format("{}{}.safetensors", named ? "" : "step-", checkpoint);
      require<CheckpointError>(fs::exists(weights), "{}: no such checkpoint; the run has {}",
                               weights.string(), checkpoint_names(checkpoints));
    } else {
      const auto newest = newest_checkpoint(directory);
      require<CheckpointError>(newest.has_value(), "{}: the run has no checkpoint yet", directory.string());
      weights = *newest;
    }
    require_run(SafetensorsFile(weights), directory);
    if (weights.filename() == kFinal) read_summary(directory);
    if (checkpoint.empty()) prune_finished(directory);
    return with_other_files(source_of(open_config((directory / kRunConfig).string(), overrides, &trained),
                                      weights, directory, trained),
                            trained, overrides);
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
  return with_other_files(source_of(open_config_text(text("config"), weights.string(), overrides, &trained),
                                    weights, {}, trained),
                          trained, overrides);
}

std::string named_values(Config config) {
  for (std::string* path : data_paths(config.task)) {
    const fs::path relative = fs::path(*path).lexically_relative(fs::current_path());
    if (!relative.empty() && *relative.begin() != "..") *path = relative.string();
  }
  return to_yaml(config);
}

fs::path run_directory(const fs::path& config_file, const Config& config) {
  return path_under_runs(config_file.stem().string(), named_values(config));
}

fs::path unused_run_directory(const fs::path& config_file, const Config& config) {
  return unused_name(run_directory(config_file, config));
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
