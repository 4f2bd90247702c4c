// What training calls: an observer, and a function that logs heads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "thimble/train/config.h"
#include "thimble/train/json.h"
#include "thimble/train/results.h"

namespace thimble {

// An observer of training, called on the thread that called train().
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  // Called before the first step; so_far.steps > 0 when a run is resumed.
  virtual void on_start(const OpenConfig&, const TrainResult& /*so_far*/) {}
  virtual void on_step(const StepReport&) {}
  virtual void on_validation(std::int64_t /*step*/, const EvalResult&) {}
  // Called with what the model draws, see train.sample_every.
  virtual void on_samples(std::int64_t /*step*/, const std::vector<std::string>& /*texts*/) {}
  // Called for a damaged checkpoint, with the reason; the one before it is tried next.
  virtual void on_damaged(const std::string& /*reason*/) {}
  // Called for what a resumed run misses or leaves behind.
  virtual void on_remark(const std::string& /*remark*/) {}
  // Called for each value that a resumed run changes, such as "train.steps: 100 in the checkpoint, 200 in this
  // config".
  virtual void on_change(const std::string& /*difference*/) {}
  // Called after every step; return true, on any rank, to save progress and stop.
  virtual bool wants_stop() { return false; }
};

// The parameters of a model in the precision of its config, in the layout of ParameterStore.
using WeightsView = std::variant<std::span<const float>, std::span<const double>>;

// A function from parameters to a JSON object, equal for equal parameters.
using HeadLog = std::function<Json(WeightsView)>;

}  // namespace thimble
