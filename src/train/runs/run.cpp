#include "thimble/train/run.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "thimble/engine/error.h"
#include "thimble/train/run_state.h"
#include "train/config/yaml.h"
#include "train/data/data_paths.h"
#include "train/files/path.h"
#include "train/runs/run_layout.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

// Returns the source with its changes since training.
ModelSource model_source(OpenConfig config, const std::shared_ptr<const SafetensorsFile>& weights,
                         const DataRecord& trained) {
  ModelSource source{.config = std::move(config), .weights = weights->path(), .file = weights};
  if (source.config.source != nullptr)
    for (std::string& line : changed_files(trained, source.config.source->files()))
      source.changes.push_back({.text = std::move(line)});
  return source;
}

// Opens the config and data of a trained model.
OpenConfig opened_for(const std::string& yaml, const std::string& name,
                      const std::vector<std::string>& overrides, const DataRecord& trained,
                      const SafetensorsFile& weights) {
  Rules rules{.training = false};
  if (trained.known()) rules.trained = &trained;
  for (const char* output : {"output.weight", "output.3.weight"})
    if (const auto found = weights.entries().find(output); found != weights.entries().end())
      rules.outputs = trained.known() ? 0 : found->second.shape[0];
  return open_data(parse_config(yaml, name, overrides, rules), rules);
}

// Adds a line for each data file that is missing or another one than in training, though no override names it.
ModelSource with_other_files(ModelSource source, const DataRecord& trained,
                             const std::vector<std::string>& overrides) {
  if (source.config.source == nullptr) return source;
  const std::vector<DataFile>& now = source.config.source->files();
  for (const DataFile& before : trained.files) {
    const auto file = std::ranges::find(now, before.key, &DataFile::key);
    const std::string key = fmt::format("task.{}", before.key);
    const bool is_given =
        std::ranges::any_of(overrides, [&](const std::string& text) { return text.starts_with(key + "="); });
    const bool is_same =
        file != now.end() && !file->hash.empty() && (file->path == before.path || file->path == before.moved);
    if (is_given || is_same) continue;
    const std::vector<DataFile> there = file == now.end() ? std::vector<DataFile>() : std::vector{*file};
    for (std::string& line : differing_files({before}, there))
      source.changes.push_back({std::move(line), !there.empty() && there[0].hash.empty()});
  }
  return source;
}

// Returns a line for each split of a stream of which version 0.3 evaluated the first windows.
std::vector<std::string> sample_remarks(const OpenConfig& config, const DataRecord& trained) {
  std::vector<std::string> lines;
  if (config.source == nullptr || config.source->starts() == 0 || !trained.step_order.empty()) return lines;
  for (const Split split : {Split::validation, Split::test})
    if (const std::int64_t count = config.data.size(split); count < config.source->rows(split))
      lines.push_back(fmt::format(
          "data.{0}={1}: version 0.3 took the first {1} windows, this one takes a random sample of {1}",
          split_name(split), count));
  return lines;
}

}  // namespace

std::shared_ptr<const SafetensorsFile> ModelSource::open() const {
  return file ? file : std::make_shared<const SafetensorsFile>(weights);
}

std::vector<std::string> changed_data(const RunDirectory& run, const OpenConfig& config) {
  if (config.source == nullptr) return {};
  const DataRecord& trained = run.data();
  std::vector<std::string> lines = differing_files(trained.files, config.source->files());
  if (const std::string mismatch = split_rule_mismatch(trained); !mismatch.empty()) lines.push_back(mismatch);
  return lines;
}

ModelSource open_run(const RunDirectory& run, const std::vector<std::string>& overrides,
                     const std::string& checkpoint) {
  std::vector<std::string> remarks;
  const Checkpoint opened = run.checkpoint(checkpoint, remarks);
  const DataRecord& trained = run.data();
  ModelSource source = with_other_files(model_source(opened_for(run.config_text(), run.config_path().string(),
                                                                overrides, trained, *opened.file),
                                                     opened.file, trained),
                                        trained, overrides);
  source.run = run;
  source.remarks = std::move(remarks);
  std::ranges::move(sample_remarks(source.config, trained), std::back_inserter(source.remarks));
  source.state = opened.state;
  return source;
}

ModelSource open_weights(const fs::path& weights, const std::string& config_file,
                         const std::vector<std::string>& overrides) {
  const auto file = std::make_shared<const SafetensorsFile>(weights);
  const auto text = [&](const char* key) {
    const auto found = file->metadata().find(key);
    return found == file->metadata().end() ? std::string() : found->second;
  };
  DataRecord trained;
  try {
    if (!text("data").empty()) trained = parse_record(text("data"));
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: {}", weights.string(), e.what()));
  }
  if (!config_file.empty())
    return model_source(
        opened_for(config::read_config_file(config_file), config_file, overrides, trained, *file), file,
        trained);
  require<CheckpointError>(
      !text("config").empty(),
      "{}: no config in the metadata; give the config of the model as well (--config FILE)",
      weights.string());
  return with_other_files(
      model_source(opened_for(text("config"), weights.string(), overrides, trained, *file), file, trained),
      trained, overrides);
}

std::string named_values(const Config& values) {
  Config config = values;
  for (std::string* path : data_paths(config.task)) {
    const fs::path relative = fs::path(*path).lexically_relative(fs::current_path());
    if (!relative.empty() && *relative.begin() != "..") *path = relative.string();
  }
  if (config.train.evaluate_every == kAuto) config.train.evaluate_every = 0;  // the default of 0.3.0
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

std::int64_t evaluation_interval(const TrainConfig& train, std::int64_t validation) {
  if (train.evaluate_every != kAuto) return train.evaluate_every;
  constexpr std::int64_t kEvaluations = 20, kTrainedPerEvaluated = 5;
  const bool may_stop = has_target(train.target) || train.patience > 0;
  std::int64_t least = (train.steps + kEvaluations - 1) / kEvaluations;
  if (!may_stop) least = std::max(least, kTrainedPerEvaluated * validation / train.batch);
  for (std::int64_t power = 1;; power *= 10)
    for (const std::int64_t every : {power, 2 * power, 5 * power})
      if (every >= least) return every;
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
