// Experiments, carried out: their runs are trained as a sweep trains them, their values measured on each
// seed, their conditions decided.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/config/experiment.h"
#include "thimble/core/json.h"
#include "thimble/train/sweep.h"

namespace thimble {

enum class ExperimentVerdict { pass, fail, not_shown };
std::string_view name(ExperimentVerdict);  // "PASS", "FAIL", "NOT SHOWN"

// holds[condition][seed]. PASS: every condition holds on every seed. FAIL: some condition holds on none. NOT
// SHOWN: otherwise, and whatever holds if something could not be measured.
ExperimentVerdict judge(const std::vector<std::vector<bool>>& holds, bool complete);

struct Range {
  double min = 0, median = 0, max = 0;  // NaN without numbers
};
// Of the numbers that are not NaN; the median of an even count is the mean of the middle two.
Range range(std::vector<double> numbers);

struct ExperimentResult {
  Experiment experiment;
  std::vector<std::vector<double>> values;    // by value and seed, NaN for what could not be measured
  std::vector<std::vector<bool>> conditions;  // by condition and seed, whether it holds
  std::vector<std::string> problems;          // why something could not be measured
  ExperimentVerdict verdict = ExperimentVerdict::not_shown;
  double seconds = 0;        // that it took, with what was trained before left out
  bool interrupted = false;  // then nothing is measured

  // Whether it counts as a success: nothing stood in the way, and a golden or control got PASS. What becomes
  // of a claim is a result either way.
  bool stands() const {
    return problems.empty() &&
           (experiment.kind == ExperimentKind::claim || verdict == ExperimentVerdict::pass);
  }
};

// Told what happens; the functions of SweepObserver are about training.
class ReproduceObserver : public SweepObserver {
 public:
  virtual void on_value(const ExperimentValue&, const std::vector<double>& /*of each seed*/) {}
  // Asked at the start and before each measurement; true interrupts the experiment.
  virtual bool wants_stop() { return false; }
};

struct ReproduceOptions {
  std::filesystem::path directory;  // of all experiments
  std::int64_t jobs = 0;            // see SweepOptions; also threads of a measurement
  ReproduceObserver* observer = nullptr;
};

// Trains what directory/NAME does not hold yet, measures and decides. Throws CheckpointError as run_sweep
// does; a run that fails and a value that cannot be had are problems of the result.
ExperimentResult run_experiment(const Experiment& experiment, const ReproduceOptions& options);

// The experiment as a sweep over its runs and seeds.
Sweep to_sweep(const Experiment& experiment);

// {"name", "file", "statement", "source", "kind", "quick", "verdict", "seconds", "seeds", "runs", "values",
// "conditions", "problems"}; null for what could not be measured, "never" for infinity.
Json to_json(const ExperimentResult& result);

}  // namespace thimble
