#include "thimble/ops/ops.h"

#include "thimble/kernels/elementwise.h"

namespace thimble::inline THIMBLE_PRECISION {

Var relu(Var x) {
  Tape& tape = x.tape();
  const Var y = tape.node("relu", x.shape(), {x});
  kernels::relu_forward(y.value(), x.value());
  tape.on_backward(y, [x, y] { kernels::relu_backward(x.grad_sum(), y.grad(), y.value()); });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
