// Experiments, carried out: their runs are trained as a sweep trains them, their values measured on each
// seed, their conditions decided.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "thimble/reproduce/experiment.h"
#include "thimble/reproduce/verdict.h"
#include "thimble/sweep/run_sweep.h"

namespace thimble {

// An observer of an experiment; the functions of SweepObserver are about training.
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

}  // namespace thimble
