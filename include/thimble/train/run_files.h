// Readers of the files of a run, each compared with the run's newest checkpoint.
//
// A run has an identity, the hash of the config values that may not change and of the data, which begins a
// chain of checksums over the lines of metrics.jsonl. A checkpoint stores the identity, and how far the chain
// was; summary.json stores both, too, and a checksum of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "thimble/config/config.h"
#include "thimble/core/json.h"
#include "thimble/data/data_record.h"
#include "thimble/tensor/safetensors.h"

namespace thimble {

// The checksum of the lines of a metrics.jsonl so far. A line ends with `"check":"HASH","seconds":1.5}`, where
// HASH is the XXH3-64 of the check before and the text up to there, so that equal runs have equal checks.
class MetricsCheck {
 public:
  // `value`: that after the lines before, or the identity of the run; "": lines have no checks.
  explicit MetricsCheck(std::string value = "") : value_(std::move(value)) {}

  std::string line(const Json& metrics, double seconds);  // returns the line, with its line break
  bool accept(std::string_view line);                     // returns whether the line is the next one
  const std::string& value() const { return value_; }

 private:
  std::string value_;
};

// Returns the identity of a run: 16 hexadecimal digits.
std::string run_identity(const Config& config, const DataRecord& data);

// Returns the checkpoint with which training ended, or the newest one before; nothing if there is none. Throws
// CheckpointError if training has ended and its last checkpoint is missing, but others are there.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& run);

// Returns metrics.jsonl; "" if there is none. Its last line may be incomplete. Throws CheckpointError, naming
// the line, when it is truncated, was changed, or belongs to another run.
std::string read_metrics(const std::filesystem::path& run);

// Returns summary.json; null if there is none. Throws CheckpointError when it is not valid JSON, was changed,
// or belongs to another run.
Json read_summary(const std::filesystem::path& run);

// Returns the result of a run as its summary.json stores it, with its identity and a checksum.
Json summary_json(const Json& result, const std::string& run, std::uint64_t metrics_bytes,
                  const std::string& metrics_check);

// Returns the object with a checksum of its other values.
Json with_checksum(Json object);
// Returns whether the object has a checksum that does not match.
bool has_changed(const Json& object);

// Throws ConfigError, with each key and both values, when config.yaml or data.json of a run is not what the
// checkpoint was trained with. Keys that may change on resuming may differ, and those whose change
// changes.json records. Throws CheckpointError for a file that is not a checkpoint of a run.
void require_run(const SafetensorsFile& checkpoint, const std::filesystem::path& run);

// Adds the values of `now` that differ from those of `before` to changes.json, a list of {"step", "key",
// "from", "to"}: from that step on, training used the other value. Changes of a key at one step become one.
void record_changes(const std::filesystem::path& run, std::int64_t step, const Config& before,
                    const Config& now);

}  // namespace thimble
