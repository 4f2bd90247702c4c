// Checks a hand-written backward pass against finite differences.
//
// The loss is sum(R * y) with a random R, since a plain sum makes some gradients vanish identically (softmax,
// layer norm). Backward runs from gradient buffers that hold random values and from empty ones, which detects
// `=` in place of `+=`.
//
// Each numerical derivative states its error: what a smaller step changes, and three standard deviations of the
// rounding of the loss, which is measured. Two central differences with steps near 3e-4 max(1, |x|), extrapolated, are
// enough for most; what they leave open is tried with larger steps in tableaux of Ridders (1982). ReLUs keep the side of
// their kink that they have at the point; a kink that an op does not tell shows as two different slopes and counts as
// error. The verdict is
//   ok         with an error below 1e-5 of the gradient, or of 1e-2 of the largest gradient of the tensor
//   wrong      where two tableaux of different steps agree and contradict the gradient by ten times their errors, and
//              smaller steps, as far as rounding lets them, give the same
//   undecided  otherwise, with the reason and what would help
// A gradient that is zero everywhere is undecided unless it is declared zero by construction.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "thimble/engine/gradcheck_result.h"
#include "thimble/engine/tape.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// An input of an op whose gradient is checked.
struct GradcheckInput {
  std::string name;
  Tensor value;
  bool zero_gradient = false;  // the gradient is zero by construction, and must be
};

// A function y = f(tape, inputs) with one Var per input.
using GradcheckFunction = std::function<Var(Tape&, std::span<const Var>)>;
// Checks the gradient of every input, and returns one result per input, in order. Meant for double.
std::vector<GradcheckResult> gradcheck(const std::string& op, const GradcheckFunction& f,
                                       std::span<const GradcheckInput> inputs, std::uint64_t seed = 1);

// A scalar function of the parameters of a store.
using LossFunction = std::function<Var(Tape&)>;

// Checks the gradient of every parameter: tensors of at most 256 elements at every element, larger ones along
// 16 random directions and at 64 random elements. Directions also decide where single elements are too small. A
// parameter that the loss never uses is wrong. Restores the values. `advance` receives the share of the whole check, in
// [0, 1], that was done since its last call.
std::vector<GradcheckResult> gradcheck(
    ParameterStore& store, const LossFunction& loss, std::uint64_t seed = 1,
    const std::function<void(double share)>& advance = [](double) {});

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
