// The config of a model and its training, read from YAML. Each struct has one field list
// (src/train/config/fields.cpp), from which parsing, checks, JSON Schema and dump follow.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
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

inline constexpr std::int64_t kAuto = kAll;  // evaluates as evaluation_interval() says

struct TrainConfig {
  std::int64_t steps = 1000;
  std::int64_t batch = 128;  // sequences per step
  std::uint64_t seed = 42;
  std::int64_t shards = 4;   // parts of a batch whose gradients are summed in a fixed tree
  std::int64_t threads = 0;  // 0: all cores; never changes the result
  Precision precision = Precision::float32;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  double clip_norm = 0;                 // maximum global gradient norm; 0: no clipping
  double label_smoothing = 0;           // in [0, 1)
  std::int64_t evaluate_every = kAuto;  // steps; 0: only after the last
  std::int64_t sample_every = 0;        // steps between samples of a text; 0: none
  TargetConfig target;
  std::int64_t patience = 0;             // evaluations without a lower validation loss; 0: no limit
  std::int64_t checkpoint_every = 1000;  // steps; 0: only at the end and when interrupted
  bool checkpoint_series = false;        // also keep checkpoints at steps 1, 2, 5, 10, 20, 50, ...
  bool log_heads = false;                // log attention-head scores to metrics.jsonl
};

struct OpenConfig;

struct Config {
  TaskConfig task;
  DataConfig data;
  ModelConfig model;
  TrainConfig train;

  Config() = default;
  Config(const Config&) = default;
  Config(Config&&) = default;
  Config& operator=(const Config&) = default;
  Config& operator=(Config&&) = default;
  Config(const OpenConfig&) = delete;  // the copy would have no data
  Config& operator=(const OpenConfig&) = delete;

  const Config& values() const { return *this; }  // what may be copied of an OpenConfig
};

// A config with where its values were written.
struct ResolvedConfig : Config {
  std::map<std::string, SourceLocation> origins{};  // by dotted path; a value without one is a default
  std::vector<std::string> files{};  // it was read from: that of the config, then those it builds on

  ResolvedConfig() = default;
  ResolvedConfig(Config config) : Config(std::move(config)) {}
};

// A config and the source of its data: what needs data takes it. A config of a generated task converts by itself.
struct OpenConfig : Config {
  std::shared_ptr<const Source> source{};  // of data files; null: the task generates its sequences
  Outputs outputs = Outputs::answers;      // vocabulary: of a model that was trained so
  std::vector<std::string> files{};        // as those of ResolvedConfig

  OpenConfig() = default;
  OpenConfig(ResolvedConfig config, std::shared_ptr<const Source> of = nullptr)
      : Config(config.values()), source(std::move(of)), files(std::move(config.files)) {}
  OpenConfig(Config config, std::shared_ptr<const Source> of = nullptr)
      : Config(std::move(config)), source(std::move(of)) {}
};

// Which rules a config has to keep.
struct Rules {
  bool training = true;  // those that only training needs
  // Of a trained model: the task must have its vocabulary, and lengths within its position tables. Data files are then
  // read with that vocabulary, and may be missing, see Table. Null: there is none.
  const DataRecord* trained = nullptr;
  std::int64_t outputs = 0;  // of weights that have no record; 0: not known
};

// Reads a config and checks its values, without opening data files. `overrides` are "a.b.c=value"; they
// override the file, which overrides the file that its key `base` names. Relative paths start at the folder
// of the config file they are written in, those of overrides at the current one. Throws one ConfigError whose
// message is a summary and then every problem, a line each: file:line:column: key: rule; remedy.
ResolvedConfig load_config(const std::string& path, const std::vector<std::string>& overrides = {},
                           const Rules& rules = {});

// Does what load_config does for YAML text, with `name` in place of the path.
ResolvedConfig parse_config(const std::string& yaml, const std::string& name,
                            const std::vector<std::string>& overrides = {}, const Rules& rules = {});

// Opens the data files of a config that was read, and checks that they suit the model. Throws one ConfigError as
// load_config does, and DataError, with files and lines, as Table does. `shared`, unless null, is the source of another
// config that has the same task.
OpenConfig open_data(ResolvedConfig config, const Rules& rules = {},
                     std::shared_ptr<const Source> shared = nullptr);

// Does what load_config and open_data do.
OpenConfig open_config(const std::string& path, const std::vector<std::string>& overrides = {},
                       const Rules& rules = {});

// Returns a config of the task with the overrides, to describe the task, and a model that fits it. Throws as
// open_config does.
OpenConfig task_config(const std::string& name, std::vector<std::string> overrides);

// Returns the source of the config's sequences. Throws DataError when its data files are not open.
std::shared_ptr<const Source> source_of(const OpenConfig&);

// Return every value that has an effect, in the order of the field lists, without empty paths; with origins as comments.
// parse_config reads the same config back from the YAML.
std::string to_yaml(const Config&);
std::string to_annotated_yaml(const ResolvedConfig&);
Json to_json(const Config&);

// Returns the JSON Schema (draft-07) of config files.
Json config_schema();

// Returns how examples must be laid out for the model.
Layout layout_of(const ModelConfig&);

// Return the sizes of the config's model and of the splits of its data, the names of its tokens, its dataset, and the record
// of its data. Throw DataError as the functions of Source and Dataset do.
ModelSizes model_sizes(const OpenConfig&);
DataConfig split_sizes(const OpenConfig&);
std::vector<std::string> token_names(const OpenConfig&);
Dataset make_dataset(const OpenConfig&);
DataRecord record_of(const OpenConfig&);

// Returns whether the model predicts its own next token, and its state can be kept: whether it generates outputs.
bool generates(const Config&);

}  // namespace thimble
