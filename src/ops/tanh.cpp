#include "thimble/ops/ops.h"

#include "thimble/kernels/elementwise.h"

namespace thimble::inline THIMBLE_PRECISION {

Var tanh(Var x) {
  Tape& tape = x.tape();
  const Var y = tape.node("tanh", x.shape(), {x});
  kernels::tanh_forward(y.value(), x.value());
  tape.on_backward(y, [x, y] { kernels::tanh_backward(x.grad_sum(), y.grad(), y.value()); });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
