// Optimizers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/engine/optim_config.h"
#include "thimble/engine/parameter.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// SGD with momentum, Adam or AdamW, with PyTorch's formulas. It updates a parameter store from a gradient
// buffer of the same layout.
class Optimizer {
 public:
  // A part of one parameter that fits into the first-level cache. Segments are updated independently.
  struct Segment {
    std::size_t offset, size;
    bool decays;  // whether weight decay applies: to matrices, embeddings included
  };

  Optimizer(const OptimizerConfig& config, const ParameterStore& store);

  // Makes a step: updates all parameters, at `factor` times the learning rate of the config.
  void step(std::span<Real> parameters, std::span<const Real> gradients, double factor = 1);

  // The parts of a step, for several threads.
  const std::vector<Segment>& segments() const { return segments_; }

  // Starts the next step, with its learning rate and the factor of the gradients.
  void begin_step(double learning_rate, double gradient_scale);

  // Updates one segment of the parameters.
  void update(const Segment& segment, std::span<Real> parameters, std::span<const Real> gradients);

  std::int64_t steps() const { return step_; }
  void set_steps(std::int64_t steps) { step_ = steps; }

  // The state, under PyTorch's names, with the layout of the parameters: exp_avg and exp_avg_sq of Adam,
  // momentum_buffer of SGD.
  struct Moment {
    std::string_view name;
    std::span<Real> values;
  };
  std::vector<Moment> moments();

 private:
  OptimizerConfig config_;
  std::vector<Segment> segments_;
  AlignedVector<Real> first_, second_;  // Adam's m and v; the momentum of SGD and nothing
  std::int64_t step_ = 0;
  double learning_rate_ = 0, gradient_scale_ = 1;
};

// Returns the factor of gradients of this global norm that clips it to max_norm (Pascanu et al. 2013), with
// PyTorch's 1e-6 in the denominator; 1 for max_norm 0.
double clip_factor(double norm, double max_norm);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
