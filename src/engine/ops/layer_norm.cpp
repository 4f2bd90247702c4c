#include "thimble/engine/ops.h"

#include "engine/kernels/norm.h"
#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var layer_norm(Var x, Var weight, Var bias, Real epsilon) {
  const Shape channels{x.shape().last()};
  require<ShapeError>(weight.shape() == channels && bias.shape() == channels,
                      "layer_norm: x {}, weight {}, bias {}: weight and bias must be {}", x.shape(),
                      weight.shape(), bias.shape(), channels);
  const MatrixView mean_rstd = x.tape().scratch(x.shape().rows(), 2);
  return record(
      "layer_norm", x.shape(), {x, weight, bias},
      [=](Var y) {
        kernels::layer_norm_forward(y.value(), mean_rstd, x.value(), weight.value(), bias.value(), epsilon);
      },
      [=](Var y) {
        kernels::layer_norm_backward(x.grad_accumulator(), weight.zeroed_grad_accumulator(),
                                     bias.zeroed_grad_accumulator(), y.grad(), x.value(), weight.value(),
                                     mean_rstd);
      });
}

std::vector<GradcheckCase> gradcheck_layer_norm() {
  const auto norm = [](Tape&, Inputs in) { return layer_norm(in[0], in[1], in[2]); };
  return {{"layer_norm", "", {normal("x", {2, 3, 7}), normal("weight", {7}), normal("bias", {7})}, norm},
          {"layer_norm",
           "40 columns",
           {normal("x", {3, 40}), normal("weight", {40}), normal("bias", {40})},
           norm},
          {"layer_norm",
           "one column",
           {zero_gradient(normal("x", {3, 1})), zero_gradient(normal("weight", {1})), normal("bias", {1})},
           norm}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
