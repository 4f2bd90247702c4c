// Everything an experiment is made of, and how it is read from YAML. Each struct has one field list
// (src/config/fields.cpp) from which parsing, checks, JSON Schema and dump all come.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/core/source_location.h"
#include "thimble/data/data_record.h"
#include "thimble/data/dataset.h"
#include "thimble/data/task.h"
#include "thimble/model/model_config.h"
#include "thimble/optim/optim_config.h"

namespace thimble {

enum class Precision { float32, float64 };

// Training ends as soon as an evaluation reaches one of these.
struct TargetConfig {
  double accuracy = 0;  // share of validation tokens that are right; 0: no target
  double loss = 0;      // largest validation loss, nats; 0: no target
};

struct TrainConfig {
  std::int64_t steps = 1000;
  std::int64_t batch = 128;  // sequences per step
  std::uint64_t seed = 42;
  std::int64_t shards = 4;   // parts of a batch whose gradients are summed in a fixed tree
  std::int64_t threads = 0;  // 0: every core; never changes a result
  Precision precision = Precision::float32;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  double clip_norm = 0;             // largest global gradient norm; 0: no clipping
  double label_smoothing = 0;       // in [0, 1)
  std::int64_t evaluate_every = 0;  // steps; 0: only after the last
  TargetConfig target;
  std::int64_t patience = 0;             // evaluations without a better validation loss; 0: no limit
  std::int64_t checkpoint_every = 1000;  // steps; 0: only at the end and when interrupted
  bool checkpoint_series = false;        // checkpoints at steps 1, 2, 5, 10, 20, 50, ..., too
  bool log_heads = false;                // scores of the heads into metrics.jsonl
};

struct Config {
  TaskConfig task;
  DataConfig data;
  ModelConfig model;
  TrainConfig train;
};

// Reads and checks a config; `overrides` are "a.b.c=value" and win over the file, which wins over the file
// that its key `base` names. Relative paths start at the folder of the file that says them, or at the current
// one. Throws one ConfigError whose message is a summary and then every problem, a line each:
// file:line:column: key: rule, what to do. The files of task `file` are read last; what is wrong with them is
// a DataError, see Table.
//
// `trained` says that the config is that of a trained model: what only training needs is not checked, and
// with a record that is known() the task must have the model's vocabulary and fit its position tables. Data
// files are then read with that vocabulary, and may be gone, see Table.
Config load_config(const std::string& path, const std::vector<std::string>& overrides = {},
                   const DataRecord* trained = nullptr);

struct ResolvedConfig {
  Config config;
  std::map<std::string, SourceLocation> origins;  // by dotted path; what has none has its default
};

// load_config with the origin of every value.
ResolvedConfig resolve_config(const std::string& path, const std::vector<std::string>& overrides = {});

// load_config for YAML text; `name` stands for the file.
Config parse_config(const std::string& yaml, const std::string& name,
                    const std::vector<std::string>& overrides = {}, const DataRecord* trained = nullptr);

// Every value that applies, in the order of the field lists; paths that are empty are left out. parse_config
// of the YAML gives the same config back.
std::string to_yaml(const Config&);
std::string to_yaml(const ResolvedConfig&);  // with comments that say where each value comes from
Json to_json(const Config&);

// JSON Schema (draft-07, which every editor knows) of a config file.
Json config_schema();

// How the data must be laid out for such a model.
Layout layout_of(const ModelConfig&);

}  // namespace thimble
