// The config of a model and its training, read from YAML. Each struct has one field list
// (src/train/config/fields.cpp), from which parsing, checks, JSON Schema and dump follow.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "thimble/engine/model_config.h"
#include "thimble/engine/optim_config.h"
#include "thimble/engine/source_location.h"
#include "thimble/train/data_record.h"
#include "thimble/train/dataset.h"
#include "thimble/train/json.h"
#include "thimble/train/task.h"

namespace thimble {

enum class Precision { float32, float64 };

// A target for early stopping: training ends when an evaluation reaches all that are set.
struct TargetConfig {
  double accuracy = 0;  // validation accuracy, from 0 to 1; 0: no target
  double loss = 0;      // validation loss, nats; 0: no target
};

struct TrainConfig {
  std::int64_t steps = 1000;
  std::int64_t batch = 128;  // sequences per step
  std::uint64_t seed = 42;
  std::int64_t shards = 4;   // parts of a batch whose gradients are summed in a fixed tree
  std::int64_t threads = 0;  // 0: all cores; never changes the result
  Precision precision = Precision::float32;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  double clip_norm = 0;             // maximum global gradient norm; 0: no clipping
  double label_smoothing = 0;       // in [0, 1)
  std::int64_t evaluate_every = 0;  // steps; 0: only after the last
  std::int64_t sample_every = 0;    // steps between samples of a text; 0: none
  TargetConfig target;
  std::int64_t patience = 0;             // evaluations without a lower validation loss; 0: no limit
  std::int64_t checkpoint_every = 1000;  // steps; 0: only at the end and when interrupted
  bool checkpoint_series = false;        // also keep checkpoints at steps 1, 2, 5, 10, 20, 50, ...
  bool log_heads = false;                // log attention-head scores to metrics.jsonl
};

struct Config {
  TaskConfig task;
  DataConfig data;
  ModelConfig model;
  TrainConfig train;
};

// Reads a config and checks its values, without opening data files. `overrides` are "a.b.c=value"; they
// override the file, which overrides the file that its key `base` names. Relative paths start at the folder
// of the config file they are written in, those of overrides at the current one. Throws one ConfigError whose
// message is a summary and then every problem, a line each: file:line:column: key: rule; remedy.
Config load_config(const std::string& path, const std::vector<std::string>& overrides = {});

// Does what load_config does for YAML text, with `name` in place of the path. With `trained`, rules that only
// training needs are not checked, see open_config.
Config parse_config(const std::string& yaml, const std::string& name,
                    const std::vector<std::string>& overrides = {}, const DataRecord* trained = nullptr);

// Reads a config to train, evaluate or inspect its model. Opens the data files of task `file`, once the
// values have no problems, and checks that they suit the model. Throws ConfigError as load_config does, and
// DataError, with files and lines, as Table does.
//
// `trained` is given for a trained model: rules that only training needs are not checked, and a record that
// is known() requires of the task the model's vocabulary and lengths within its position tables. Data files
// are then read with that vocabulary, and may be missing, see Table.
Config open_config(const std::string& path, const std::vector<std::string>& overrides = {},
                   const DataRecord* trained = nullptr);

// Does what open_config does for YAML text, with `name` in place of the path.
Config open_config_text(const std::string& yaml, const std::string& name,
                        const std::vector<std::string>& overrides = {}, const DataRecord* trained = nullptr);

// Returns a config of the task with the overrides, to describe the task, and a model that fits it. Throws as
// open_config does.
Config task_config(const std::string& name, std::vector<std::string> overrides);

struct ResolvedConfig {
  Config config;
  std::map<std::string, SourceLocation> origins;  // by dotted path; a value without one is a default
};

// Does what open_config does, and returns the origin of every value too.
ResolvedConfig resolve_config(const std::string& path, const std::vector<std::string>& overrides = {});

// Returns every value that has an effect, in the order of the field lists, without empty paths; with origins
// as comments for a ResolvedConfig. parse_config reads the same config back from the YAML.
std::string to_yaml(const Config&);
std::string to_yaml(const ResolvedConfig&);
Json to_json(const Config&);

// Returns the JSON Schema (draft-07) of config files.
Json config_schema();

// Returns how examples must be laid out for the model.
Layout layout_of(const ModelConfig&);

// Returns the sizes of the config's model. Throws DataError as model_sizes does of its task and layout.
ModelSizes model_sizes(const Config&);

// Returns whether the model predicts its own next token, and its state can be kept: whether it generates outputs.
bool generates(const Config&);

}  // namespace thimble
