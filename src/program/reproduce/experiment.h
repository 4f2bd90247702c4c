// An experiment: a statement, the runs that test it, and the conditions that decide. Read from YAML:
//
//   statement: one head writes 16 digits backwards
//   source: UvA deep-learning course, tutorial 6
//   kind: golden                        # golden, control or claim
//   data: the text of tiny Shakespeare  # what `--data` names, task.file of all runs; default: none is needed
//   quick: true                         # ends within 5 minutes on 2 cores; default true
//   seeds: [42, 43, 44]                 # of train.seed; the default
//   runs:
//     trained:
//       config: ../reverse.yaml         # relative to this file
//       set: {train.steps: 2000}        # changes to it
//       evaluate: {longer: {task.length: 20}}  # names of other test data, with changes to the config
//   values:                             # one number for each seed
//     accuracy: {run: trained, of: train, path: test.accuracy}
//     mirror: {run: trained, of: inspect, path: heads.*.scores.mirror.value, take: max}
//     best: {least: [slow, fast]}     # the least of values further up
//   conditions:                         # each holds on a seed or does not
//     - {value: accuracy, at_least: 0.9999}
//     - {value: mirror, above: 0.5}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/sweep/sweep.h"

namespace thimble {

enum class ExperimentKind { golden, control, claim };
inline constexpr std::string_view kExperimentKinds[] = {"golden", "control", "claim"};

// A bound on a number, by a margin that makes it stricter, or looser if negative.
struct Bound {
  enum Relation { at_least, at_most, above, below };  // >= + by, <= - by, > + by, < - by
  Relation relation = at_least;
  double number = 0;
  std::string value{};  // if not empty, the name of a value on the same seed, in place of `number`
  double by = 0;
};
inline constexpr std::string_view kRelations[] = {"at_least", "at_most", "above", "below"};

// A filter of the nodes that the first * of a path matches: the number or text at `path` below the node must
// be `equals` or within the bound.
struct Filter {
  std::string path, equals;
  std::optional<Bound> bound;
};

// How the numbers that a path matches become one; `only` requires a single match.
enum class Take { only, first, last, min, max, mean, count };
inline constexpr std::string_view kTakes[] = {"only", "first", "last", "min", "max", "mean", "count"};

// A number that is measured on each seed.
struct ExperimentValue {
  std::string name;
  std::vector<std::string> least{};  // names of values, of which this is the least; then without the others
  std::string run;                   // which run of the experiment
  std::string of;                    // a key of kMeasurements, or an evaluation of the run
  std::string path;                  // keys and indices separated by dots, * for any
  std::vector<Filter> where;
  Take take = Take::only;
  std::optional<double> otherwise;  // without a match (`never` is infinity); empty: that is an error
};

// Documents of a run that values are taken from: summary.json, the lines of metrics.jsonl, the report of
// thimble inspect --json, and those of permutation.h, embedding_cosines.h and
// softmax_jacobian.h.
inline constexpr std::string_view kMeasurements[] = {"train",       "metrics",   "inspect",
                                                     "permutation", "embedding", "softmax"};

struct Evaluation {
  std::string name;
  std::vector<std::string> overrides;  // "a.b.c=value"
};

struct ExperimentRun {
  std::string name;
  SweepSetting setting;
  std::vector<Evaluation> evaluations;
};

struct Condition {
  std::string value;
  Bound bound;
};

struct Experiment {
  std::string name, file;  // name: of the file, without folder and .yaml
  std::string statement, source;
  ExperimentKind kind = ExperimentKind::claim;
  std::string data{};  // what the file must be that its runs read in place of theirs; empty: it needs none
  bool quick = true;
  std::vector<std::uint64_t> seeds;
  std::vector<ExperimentRun> runs;
  std::vector<ExperimentValue> values;
  std::vector<Condition> conditions;
};

// Reads an experiment and opens the config of every run and evaluation, with task.file=`data` if it has a key `data`
// and the path is not empty. Throws one ConfigError with every problem, as open_config does.
Experiment load_experiment(const std::string& path, const std::string& data = "");

}  // namespace thimble
