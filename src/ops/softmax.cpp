#include "thimble/ops/ops.h"

#include "thimble/core/error.h"
#include "thimble/kernels/softmax.h"

namespace thimble::inline THIMBLE_PRECISION {

Var softmax(Var x) {
  require<ShapeError>(x.shape().last() > 0, "softmax: x {}: the last dimension must not be empty", x.shape());
  Tape& tape = x.tape();
  const Var y = tape.node("softmax", x.shape(), {x});
  kernels::softmax_forward(y.value(), x.value());
  tape.on_backward(y, [x, y] { kernels::softmax_backward(x.grad_sum(), y.grad(), y.value()); });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
