// Checks a hand-written backward pass against finite differences.
//
// The loss is sum(R * y) with a random R, since a plain sum makes some gradients vanish identically (softmax,
// layer norm). Backward runs from gradient buffers that hold random values and from empty ones, so `=` where
// `+=` belongs is seen. Derivatives are central differences with h = 1e-5 max(1, |x|); where they disagree,
// differences extrapolated once and twice (for rounding) and smaller h (for kinks) are tried, none of which
// agrees with a wrong gradient. A gradient that is zero everywhere fails unless it is said to be zero by
// construction.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "thimble/autograd/gradcheck_result.h"
#include "thimble/autograd/tape.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

struct GradcheckInput {
  std::string name;
  Tensor value;
  bool zero_gradient = false;  // the gradient is zero by construction, and must be
};

// y = f(tape, inputs), with one Var per input. One result per input, in order. Meant for double.
using GradcheckFunction = std::function<Var(Tape&, std::span<const Var>)>;
std::vector<GradcheckResult> gradcheck(const std::string& op, const GradcheckFunction& f,
                                       std::span<const GradcheckInput> inputs, std::uint64_t seed = 1);

// The same for every parameter of a store, of which loss() is a scalar function: tensors of at most 256
// elements by element, larger ones along 16 random directions and at 64 random elements. A parameter that the
// loss never reaches fails. The values are restored.
using LossFunction = std::function<Var(Tape&)>;
std::vector<GradcheckResult> gradcheck(ParameterStore& store, const LossFunction& loss,
                                       std::uint64_t seed = 1);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
