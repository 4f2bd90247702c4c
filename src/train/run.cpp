#include "thimble/train/run.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "thimble/core/error.h"
#include "thimble/core/file.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

const char* const kWeights = "checkpoints/final.safetensors";

void write(const fs::path& path, const std::string& content) {
  try {
    write_file(path, content);
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  }
}

}  // namespace

ModelSource open_run(const fs::path& directory, const std::vector<std::string>& overrides) {
  require<CheckpointError>(fs::is_directory(directory), "{}: no such run directory; thimble train makes one",
                           directory.string());
  require<CheckpointError>(fs::exists(directory / "config.yaml") && fs::exists(directory / kWeights),
                           "{}: not a finished run: config.yaml or {} is missing", directory.string(),
                           kWeights);
  return {load_config((directory / "config.yaml").string(), overrides), directory / kWeights};
}

fs::path free_run_directory(const fs::path& config_file, const Config& config) {
  const std::string yaml = to_yaml(config);
  const auto hash = static_cast<std::uint32_t>(XXH3_64bits(yaml.data(), yaml.size()));
  const std::string name = fmt::format("{}-{:08x}", config_file.stem().string(), hash);
  for (int n = 1;; ++n) {
    fs::path directory = fs::path("runs") / (n == 1 ? name : fmt::format("{}-{}", name, n));
    if (!fs::exists(directory)) return directory;
  }
}

RunWriter::RunWriter(const fs::path& directory, const Config& config) : directory_(directory) {
  try {
    require<CheckpointError>(
        !fs::exists(directory) || (fs::is_directory(directory) && fs::is_empty(directory)),
        "{}: exists and is not an empty directory; choose another with --out", directory.string());
    fs::create_directories(directory / "checkpoints");
    write(directory / "config.yaml", to_yaml(config));
  } catch (const fs::filesystem_error& e) {
    throw CheckpointError(fmt::format("{}: cannot be created: {}", directory.string(), e.code().message()));
  }
  metrics_.open(directory / "metrics.jsonl");
}

void RunWriter::metrics(const nlohmann::ordered_json& line) {
  metrics_ << line.dump() << '\n';
  metrics_.flush();
  require<CheckpointError>(metrics_.good(), "{}: cannot be written", (directory_ / "metrics.jsonl").string());
}

void RunWriter::finish(const TrainResult& result) {
  write(directory_ / "summary.json", to_json(result).dump(2) + "\n");
}

fs::path RunWriter::weights_path() const { return directory_ / kWeights; }

nlohmann::ordered_json to_json(const StepReport& r) {
  return {{"step", r.step},
          {"loss", r.loss},
          {"accuracy", r.accuracy},
          {"learning_rate", r.learning_rate},
          {"gradient_norm", r.gradient_norm}};
}

nlohmann::ordered_json to_json(const SplitReport& r) {
  return {{"loss", r.loss},
          {"accuracy", r.accuracy},
          {"sequence_accuracy", r.sequence_accuracy},
          {"sequences", r.sequences}};
}

nlohmann::ordered_json to_json(const TrainResult& r) {
  nlohmann::ordered_json json{{"steps", r.steps}, {"train", to_json(r.train)}};
  if (r.validation) json["validation"] = to_json(*r.validation);
  if (r.test) json["test"] = to_json(*r.test);
  json["weights_hash"] = r.weights_hash;
  json["parameters"] = r.parameters;
  json["seconds"] = r.seconds;
  json["threads"] = r.threads;
  if (!r.directory.empty()) json["directory"] = r.directory;
  return json;
}

}  // namespace thimble
