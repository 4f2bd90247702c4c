// Compares runs: configs, results, curves and heads. A run is compared as it is; the runs of a sweep are
// compared by setting, over its seeds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "program/compare/heads.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "thimble/train/statistics.h"

namespace thimble {

// A run, or the runs of a setting of a sweep.
struct ComparedRun {
  std::string name;                                // short and, if the paths differ, unique
  std::vector<std::filesystem::path> directories;  // one, or those of the seeds
  Json parameters = Json::object();                // of a setting: {"model.heads": 2}
  std::int64_t failed = 0;                         // runs of a setting without a result
};

// A value of each run, as text: of a config key, or of what a run records besides. Several values of a
// setting are "1, 2" or "12 values"; "" where a key has no effect or the value is unknown.
struct ComparedValue {
  std::string key;
  std::vector<std::string> values;
  bool differs = false;
};

// A number of each run, over the seeds.
struct ComparedResult {
  std::string_view metric;   // a JSON pointer into summary.json
  std::vector<Spread> runs;  // count 0: unknown
  std::vector<bool>
      is_best;  // the lowest loss or highest accuracy; none if all are the same or the tasks differ
};

// A point of a curve, over the seeds that have one at that step.
struct CurveSpread {
  std::int64_t step = 0;
  Spread values;
};

struct ComparedCurve {
  std::string_view split, metric;  // validation or train; loss or accuracy
  std::vector<std::vector<CurveSpread>> runs;
};

// The heads of a run matched with those of the first run.
struct ComparedHeads {
  std::size_t run = 1;
  HeadComparison heads;
};

struct Comparison {
  std::vector<ComparedRun> runs;
  bool has_sweep = false;  // whether a run is a setting of a sweep
  std::vector<ComparedValue> config, records;
  std::vector<std::string> data_differs;  // keys and records of the data in which runs differ
  std::vector<FileChange> changes;        // of data files since training
  std::vector<std::string> remarks;       // other lines on the runs
  std::vector<ComparedResult> results;
  std::vector<ComparedCurve> curves;
  std::vector<ComparedHeads> heads;  // empty with a sweep
  // For the page: tokens and models of the heads.
  std::vector<std::string> tokens;
  std::vector<ModelConfig> models;
};

struct CompareOptions {
  std::int64_t sequences = 128;  // on which heads are compared
  std::int64_t examples = 3;     // of them, kept for the page
};

// Compares run directories and sweep directories, in order. A run of a sweep that has no result yet is left
// out. Throws ConfigError for fewer than two runs that are not of a sweep, and CheckpointError for a directory
// that is neither a run nor a sweep, or cannot be read.
Comparison compare(const std::vector<std::string>& directories, const CompareOptions& options = {});

// Returns {"runs": [{"name", "directories", "parameters", "failed"}], "config" and "records": [{"key",
// "values", "differs"}], "data_differs": [key], "results": [{"metric", "runs": [{"median", "min", "max",
// "count"}], "best": [run]}],
// "curves": [{"split", "metric", "runs": [[{"step", "median", "min", "max", "count"}]]}], "heads": [{"first",
// "second", "obstacle"} or {"first", "second", "sequences", "elsewhere_sequences", "chance_models",
// "matches": [{"head", "match", "overlap", "elsewhere", "chance", "queries", "elsewhere_queries"}],
// "unmatched"}]}; heads are {"layer", "head"}.
Json to_json(const Comparison&);

}  // namespace thimble
