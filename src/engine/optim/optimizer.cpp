#include "thimble/engine/optimizer.h"

#include <algorithm>
#include <cmath>

#include "engine/core/portable_math.h"
#include "engine/kernels/optimizer.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {
constexpr std::size_t kSegment = 2048;  // elements
}

Optimizer::Optimizer(const OptimizerConfig& config, const ParameterStore& store)
    : config_(config), first_(store.size()), second_(config.name == OptimizerKind::sgd ? 0 : store.size()) {
  for (const ParameterStore::Entry& entry : store.entries()) {
    for (std::size_t at = 0; at < entry.size(); at += kSegment) {
      segments_.push_back(
          {entry.offset + at, std::min(kSegment, entry.size() - at), entry.shape.rank() >= 2});
    }
  }
}

void Optimizer::step(std::span<Real> parameters, std::span<const Real> gradients, double factor) {
  begin_step(factor * config_.lr, 1);
  for (const Segment& segment : segments_) update(segment, parameters, gradients);
}

void Optimizer::begin_step(double learning_rate, double gradient_scale) {
  ++step_;
  learning_rate_ = learning_rate;
  gradient_scale_ = gradient_scale;
}

void Optimizer::update(const Segment& segment, std::span<Real> parameters, std::span<const Real> gradients) {
  const auto part = [&](auto& buffer) { return std::span(buffer).subspan(segment.offset, segment.size); };
  const double decay = segment.decays ? config_.weight_decay : 0;
  const auto real = [](double x) { return static_cast<Real>(x); };
  if (config_.name == OptimizerKind::sgd) {
    kernels::sgd_step(part(parameters), part(first_), part(gradients),
                      {real(learning_rate_), real(config_.momentum), real(decay), real(gradient_scale_)});
    return;
  }
  const bool decoupled = config_.name == OptimizerKind::adamw;
  kernels::adam_step(part(parameters), part(first_), part(second_), part(gradients),
                     {.lr = real(learning_rate_ / (1 - portable::power(config_.beta1, step_))),
                      .beta1 = real(config_.beta1),
                      .beta2 = real(config_.beta2),
                      .root_correction = real(1 / std::sqrt(1 - portable::power(config_.beta2, step_))),
                      .epsilon = real(config_.epsilon),
                      .shrink = real(decoupled ? 1 - learning_rate_ * decay : 1),
                      .l2 = real(decoupled ? 0 : decay),
                      .gradient_scale = real(gradient_scale_)});
}

std::vector<Optimizer::Moment> Optimizer::moments() {
  if (config_.name == OptimizerKind::sgd) return {{"momentum_buffer", first_}};
  return {{"exp_avg", first_}, {"exp_avg_sq", second_}};
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
