#include "engine/kernels/norm.h"

#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var rms_norm(Var x, Var weight, Real epsilon) {
  const Shape channels{x.shape().last()};
  require<ShapeError>(weight.shape() == channels, "rms_norm: x {}, weight {}: weight must be {}", x.shape(),
                      weight.shape(), channels);
  const MatrixView rrms = x.tape().scratch(x.shape().rows(), 1);
  return record(
      "rms_norm", x.shape(), {x, weight},
      [=](Var y) { kernels::rms_norm_forward(y.value(), rrms, x.value(), weight.value(), epsilon); },
      [=](Var y) {
        kernels::rms_norm_backward(x.grad_accumulator(), weight.zeroed_grad_accumulator(), y.grad(),
                                   x.value(), weight.value(), rrms);
      });
}

std::vector<GradcheckCase> gradcheck_rms_norm() {
  const auto norm = [](Tape&, Inputs in) { return rms_norm(in[0], in[1]); };
  return {{"rms_norm", "", {normal("x", {2, 3, 7}), normal("weight", {7})}, norm},
          {"rms_norm", "40 columns", {normal("x", {3, 40}), normal("weight", {40})}, norm},
          {"rms_norm", "one row", {normal("x", {1, 5}), normal("weight", {5})}, norm}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
