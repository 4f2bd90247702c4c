#include "thimble/kernels/norm.h"

#include "thimble/core/error.h"
#include "thimble/ops/ops.h"

namespace thimble::inline THIMBLE_PRECISION {

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

}  // namespace thimble::inline THIMBLE_PRECISION
