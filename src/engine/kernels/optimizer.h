// Parameter updates on parts of flat buffers, all of the same length.
#pragma once

#include <span>

#include "thimble/engine/real.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// The factors of a step of Adam or AdamW; t is the number of the step, from 1.
struct AdamFactors {
  Real lr;  // learning rate / (1 - beta1^t)
  Real beta1, beta2;
  Real root_correction;  // 1 / sqrt(1 - beta2^t)
  Real epsilon;
  Real shrink;  // 1 - learning rate * decoupled weight decay (AdamW; Loshchilov and Hutter 2019); else 1
  Real l2;      // weight decay added to the gradient (Adam); else 0
  Real gradient_scale;  // of clipping; else 1
};

// Updates the parameters p by Adam (Kingma and Ba 2015): m = beta1 m + (1 - beta1) g, v = beta2 v + (1 -
// beta2) g^2, p = shrink p - lr m / (sqrt(v) root_correction + epsilon), with g = gradient_scale gradient +
// l2 p.
void adam_step(std::span<Real> p, std::span<Real> m, std::span<Real> v, std::span<const Real> gradient,
               const AdamFactors&);

// The factors of a step of SGD.
struct SgdFactors {
  Real lr, momentum, l2, gradient_scale;
};

// Updates the parameters p by SGD with momentum: v = momentum v + g, p -= lr v, with g = gradient_scale
// gradient + l2 p.
void sgd_step(std::span<Real> p, std::span<Real> v, std::span<const Real> gradient, const SgdFactors&);

// Returns the sum of squares, accumulated in double over blocks of 1024 elements.
double sum_of_squares(std::span<const Real> x);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
