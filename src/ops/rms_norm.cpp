#include "thimble/kernels/rms_norm.h"

#include "thimble/core/error.h"
#include "thimble/ops/ops.h"

namespace thimble::inline THIMBLE_PRECISION {

Var rms_norm(Var x, Var weight, Real epsilon) {
  const Shape channels{x.shape().last()};
  require<ShapeError>(weight.shape() == channels, "rms_norm: x {}, weight {}: weight must be {}", x.shape(),
                      weight.shape(), channels);
  Tape& tape = x.tape();
  const Var y = tape.node("rms_norm", x.shape(), {x, weight});
  const MatrixView rrms = tape.scratch(x.shape().rows(), 1);
  kernels::rms_norm_forward(y.value(), rrms, x.value(), weight.value(), epsilon);
  tape.on_backward(y, [x, weight, y, rrms] {
    kernels::rms_norm_backward(x.needs_grad() ? x.grad_sum() : GradientView{},
                               weight.needs_grad() ? weight.grad() : MatrixView{}, y.grad(), x.value(),
                               weight.value(), rrms);
  });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
