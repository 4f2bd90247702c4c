#include "program/reproduce/reproduce.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "inspect/trace/embedding_cosines.h"
#include "inspect/trace/permutation.h"
#include "inspect/trace/softmax_jacobian.h"
#include "program/reproduce/measure.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/inspect.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "train/files/stopwatch.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kTraced = 20;  // sequences, for "permutation" and "softmax"

Json metrics_lines(const RunDirectory& run) {
  Json out = Json::array();
  std::vector<std::string> remarks;
  run.read_metrics(
      open_run(run).state, [&](const Json& line) { out.push_back(line); }, remarks);
  require<CheckpointError>(remarks.empty(), "{}", fmt::join(remarks, "; "));
  return out;
}

// A store of the documents of an experiment's runs, each created on first use.
class ResultStore {
 public:
  ResultStore(const Experiment& experiment, const SweepResult& sweep, std::int64_t threads)
      : experiment_(experiment), sweep_(sweep), threads_(fmt::format("train.threads={}", threads)) {}

  // Returns the document of the value for a seed, given by index. Throws an Error when there is none.
  const Json& operator()(const ExperimentValue& value, std::size_t seed) {
    const auto run = std::ranges::find(experiment_.runs, value.run, &ExperimentRun::name);
    const auto number = static_cast<std::size_t>(run - experiment_.runs.begin());
    const SweepRun& trained = sweep_.runs[number * experiment_.seeds.size() + seed];
    const auto key = std::pair(trained.name, value.of);
    if (const auto known = made_.find(key); known != made_.end()) return known->second;
    return made_[key] = make(*run, trained, value.of);
  }

 private:
  Json make(const ExperimentRun& run, const SweepRun& trained, const std::string& of) const {
    require<DataError>(trained.status == RunStatus::done || trained.status == RunStatus::missed_target,
                       "{}: {}", name(trained.status), trained.error);
    const fs::path directory = sweep_.directory / "runs" / trained.name;
    if (of == "train") return trained.result;
    if (of == "metrics") return metrics_lines(directory);
    if (of == "inspect") return to_json(inspect(open_run(directory, {threads_}), {.examples = 0}));
    if (of == "embedding") return embedding_cosines(open_run(directory));
    if (of == "permutation") return to_json(measure_permutation(open_run(directory), kTraced));
    if (of == "softmax") return softmax_jacobian(open_run(directory), kTraced);
    std::vector<std::string> overrides = std::ranges::find(run.evaluations, of, &Evaluation::name)->overrides;
    overrides.push_back(threads_);
    return {{"test", to_json(evaluate(open_run(directory, overrides), Split::test))}};
  }

  const Experiment& experiment_;
  const SweepResult& sweep_;
  std::string threads_;
  std::map<std::pair<std::string, std::string>, Json> made_;  // by run of the sweep and `of`
};

// Returns the least of the values; NaN if one of them is.
double least(const ExperimentValue& value, const Values& known) {
  double out = std::numeric_limits<double>::infinity();
  for (const std::string& name : value.least) {
    const double x = known.at(name);
    if (std::isnan(x)) return x;
    out = std::min(out, x);
  }
  return out;
}

bool wants_stop(const ReproduceOptions& options) {
  return options.observer != nullptr && options.observer->wants_stop();
}

void add_once(std::vector<std::string>& problems, const std::string& problem) {
  if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(problem);
}

// Measures every value on every seed, until the observer interrupts.
void measure_all(ExperimentResult& result, const SweepResult& sweep, const ReproduceOptions& options) {
  const Experiment& experiment = result.experiment;
  const std::size_t seeds = experiment.seeds.size();
  ResultStore store(experiment, sweep, options.jobs);
  std::vector<Values> known(seeds);
  for (const ExperimentValue& value : experiment.values) {
    std::vector<double>& numbers = result.values.emplace_back();
    for (std::size_t i = 0; i < seeds; ++i) {
      result.interrupted = wants_stop(options);
      if (result.interrupted) return;
      double number = std::numeric_limits<double>::quiet_NaN();
      try {
        number = value.least.empty() ? measure(store(value, i), value, known[i]) : least(value, known[i]);
      } catch (const Error& e) {
        add_once(result.problems, fmt::format("{}, seed {}: {}", value.run, experiment.seeds[i], e.what()));
      }
      numbers.push_back(known[i][value.name] = number);
    }
    if (options.observer != nullptr) options.observer->on_value(value, numbers);
  }
  for (const Condition& condition : experiment.conditions) {
    std::vector<bool>& on_seeds = result.conditions.emplace_back();
    for (const Values& seed : known)
      on_seeds.push_back(holds(condition.bound, seed.at(condition.value), seed));
  }
}

}  // namespace

Sweep to_sweep(const Experiment& experiment) {
  Sweep sweep{.file = experiment.file,
              .config = experiment.file,
              .overrides = {},
              .settings = {},
              .seeds = experiment.seeds};
  for (const ExperimentRun& run : experiment.runs) sweep.settings.push_back(run.setting);
  return sweep;
}

ExperimentResult run_experiment(const Experiment& experiment, const ReproduceOptions& options) {
  const Stopwatch timer;
  ExperimentResult result;
  result.experiment = experiment;
  result.interrupted = wants_stop(options);
  if (result.interrupted) return result;
  const SweepResult sweep = run_sweep(
      to_sweep(experiment),
      {.directory = options.directory / experiment.name, .jobs = options.jobs, .observer = options.observer});
  result.interrupted = sweep.interrupted;
  if (!result.interrupted) measure_all(result, sweep, options);
  if (!result.interrupted) result.verdict = judge_conditions(result.conditions, result.problems.empty());
  result.seconds = timer.seconds();
  return result;
}

}  // namespace thimble
