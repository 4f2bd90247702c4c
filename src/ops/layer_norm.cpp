#include "thimble/ops/ops.h"

#include "thimble/core/error.h"
#include "thimble/kernels/norm.h"

namespace thimble::inline THIMBLE_PRECISION {

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

}  // namespace thimble::inline THIMBLE_PRECISION
