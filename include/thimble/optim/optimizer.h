// Updates of a parameter store from a gradient buffer of the same layout.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/autograd/parameter.h"
#include "thimble/optim/optim_config.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// SGD with momentum, Adam or AdamW, with PyTorch's formulas (see kernels/optimizer.h).
class Optimizer {
 public:
  // A part of one parameter, small enough for the first-level cache. Segments are updated independently.
  struct Segment {
    std::size_t offset, size;
    bool decays;  // weight decay is for matrices only, embeddings included
  };

  Optimizer(const OptimizerConfig& config, const ParameterStore& store);

  const std::vector<Segment>& segments() const { return segments_; }

  // Begins the next step: its learning rate, and what gradients are multiplied with.
  void begin_step(double learning_rate, double gradient_scale);

  // Updates one segment of the parameters.
  void update(const Segment& segment, std::span<Real> parameters, std::span<const Real> gradients);

  std::int64_t steps() const { return step_; }
  void set_steps(std::int64_t steps) { step_ = steps; }

  // What is kept from step to step, under PyTorch's names, each with the layout of the parameters: Adam's
  // exp_avg and exp_avg_sq, the momentum_buffer of SGD.
  struct Moment {
    std::string_view name;
    std::span<Real> values;
  };
  std::vector<Moment> moments();
  std::span<const Real> first_moment() const { return first_; }    // Adam's m, the momentum of SGD
  std::span<const Real> second_moment() const { return second_; }  // Adam's v; empty for SGD

 private:
  OptimizerConfig config_;
  std::vector<Segment> segments_;
  AlignedVector<Real> first_, second_;
  std::int64_t step_ = 0;
  double learning_rate_ = 0, gradient_scale_ = 1;
};

// What gradients of this global norm are multiplied with so that it is at most max_norm (Pascanu et al.
// 2013); max_norm 0: 1. With PyTorch's 1e-6 in the denominator.
double clip_factor(double norm, double max_norm);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
