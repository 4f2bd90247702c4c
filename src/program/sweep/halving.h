// Successive halving of a sweep, decided from the validation losses that runs have recorded.
#pragma once

#include <vector>

#include "program/sweep/sweep_runs.h"
#include "thimble/train/run_directory.h"

namespace thimble {

// Returns the validation losses of a run at the steps of halving that it has reached: those that its newest checkpoint
// keeps, or else, of a run that did not stop there, those of its metrics.jsonl. A run that has `ended` keeps its last
// loss for the steps after its end, infinity if it has none. Throws CheckpointError when neither has the loss of a step.
std::vector<double> halving_losses(const Halving&, const RunDirectory& run, const RunState& newest,
                                   bool ended);

// Decides which settings go on, and sets for each run stop_after, reached and the status `stopped`. The mean
// loss over the runs of a setting counts; of equal ones the setting before goes on. Nothing is decided at a
// step before every run of the settings that got there has a loss, so that the decision depends on nothing but
// the losses.
void apply_halving(const Halving&, std::vector<SweepRun>&);

}  // namespace thimble
