// Runs made by hand: a checkpoint without tensors, and files that fit it.
#pragma once

#include <filesystem>
#include <string>

#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "thimble/train/run_directory.h"
#include "thimble/train/safetensors.h"

namespace thimble {

// Returns a summary.json with this result.
inline std::string summary_text(Json result, const std::string& run) {
  result["run"] = run;
  return json_text(result) + "\n";
}

// Writes data.json, and a checkpoint with that name and state.
inline void write_hand_made_checkpoint(const std::filesystem::path& run, const Config& config,
                                       const Json& record, const std::string& name, const RunState& state,
                                       const std::string& weights_hash = "") {
  std::filesystem::create_directories(run / "checkpoints");
  Json data{{"format", kRunFormat}};
  data.update(record);
  write_file(run / "data.json", json_text(data));
  write_safetensors(run / "checkpoints" / (name + ".safetensors"), {},
                    {{"format", kRunFormat},
                     {"config", to_yaml(config)},
                     {"data", json_text(record)},
                     {"state", json_text(to_json(state))},
                     {"weights_hash", weights_hash}});
}

// Writes a run of the config that has ended after `steps`, with these lines of metrics.jsonl, and the result unless it
// is null. Returns its identity.
inline std::string write_hand_made_run(const std::filesystem::path& run, const Config& config,
                                       const Json& record, const std::string& metrics,
                                       const Json& result = nullptr) {
  RunState state;
  state.step = config.train.steps;
  state.run = run_identity(config, parse_record(record));
  write_hand_made_checkpoint(run, config, record, "final", state,
                             result.is_null() ? "" : result.value("weights_hash", ""));
  write_file(run / "config.yaml", to_yaml(config));
  write_file(run / "metrics.jsonl", metrics);
  if (!result.is_null()) write_file(run / "summary.json", summary_text(result, state.run));
  return state.run;
}

}  // namespace thimble
