// Runs experiments: trains their runs as a sweep, measures their values on each seed and decides their
// conditions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "program/reproduce/experiment.h"
#include "program/reproduce/verdict.h"
#include "program/sweep/run_sweep.h"

namespace thimble {

// An observer of an experiment and of the sweep that trains its runs.
class ReproduceObserver : public SweepObserver {
 public:
  virtual void on_value(const ExperimentValue&, const std::vector<double>& /*of each seed*/) {}
  // Returns true to interrupt the experiment; called at the start and before each measurement.
  virtual bool wants_stop() { return false; }
};

struct ReproduceOptions {
  std::filesystem::path directory;  // of all experiments
  std::int64_t jobs = 0;            // see SweepOptions; also threads of a measurement
  ReproduceObserver* observer = nullptr;
};

// Trains the runs that directory/NAME does not hold yet, measures and decides. Throws CheckpointError as
// run_sweep does; runs that fail and values that cannot be measured are problems of the result.
ExperimentResult run_experiment(const Experiment& experiment, const ReproduceOptions& options);

// Returns the experiment as a sweep over its runs and seeds.
Sweep to_sweep(const Experiment& experiment);

}  // namespace thimble
