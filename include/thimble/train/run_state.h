// The state of a run, as its checkpoints hold it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "thimble/train/config.h"
#include "thimble/train/json.h"
#include "thimble/train/results.h"

namespace thimble {

// The state of training that a checkpoint stores besides tensors.
struct RunState {
  std::int64_t step = 0;
  double seconds = 0;  // of training so far
  std::string run;     // identity of the run, see run_identity()
  StepReport train;    // the last step
  std::optional<EvalResult> validation;
  std::int64_t best_step = 0;  // step of best_loss, the lowest validation loss; 0: none
  double best_loss = 0;
  std::int64_t evaluations_since_best = 0;
  std::string arithmetic;  // of the steps so far, as in TrainResult; "": unknown
  // Validation losses at the steps of --stop-after, by which halving decides.
  std::map<std::int64_t, double> stops;

  // Returns whether a run with that patience results in its best checkpoint, which is of an earlier step.
  bool has_best_result(std::int64_t patience) const {
    return patience > 0 && best_step > 0 && best_step < step;
  }
};

Json to_json(const RunState&);
RunState run_state(const Json&);  // throws Json::exception if the state is invalid

bool has_target(const TargetConfig&);
// Returns whether the evaluation reaches every target that is set.
bool reached(const TargetConfig&, const std::optional<EvalResult>& evaluation);
// Returns why training has ended in that state; nothing if it has not.
std::optional<Stopped> ending(const RunState&, const TrainConfig&);

}  // namespace thimble
