#include "thimble/ops/ops.h"

#include "thimble/kernels/elementwise.h"

namespace thimble::inline THIMBLE_PRECISION {

Var scale(Var x, Real factor) {
  Tape& tape = x.tape();
  const Var y = tape.node("scale", x.shape(), {x});
  kernels::scale_forward(y.value(), x.value(), factor);
  tape.on_backward(y, [x, y, factor] { kernels::scale_backward(x.grad_sum(), y.grad(), factor); });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
