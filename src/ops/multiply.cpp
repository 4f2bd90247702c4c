#include "thimble/core/error.h"
#include "thimble/kernels/elementwise.h"
#include "thimble/ops/ops.h"

namespace thimble::inline THIMBLE_PRECISION {

Var multiply(Var a, Var b) {
  require<ShapeError>(a.shape() == b.shape(), "multiply: a {} * b {}: the shapes must be equal", a.shape(),
                      b.shape());
  Tape& tape = a.tape();
  const Var y = tape.node("multiply", a.shape(), {a, b});
  kernels::multiply_forward(y.value(), a.value(), b.value());
  tape.on_backward(y, [a, b, y] {
    if (a.needs_grad()) kernels::multiply_backward(a.grad_sum(), y.grad(), b.value());
    if (b.needs_grad()) kernels::multiply_backward(b.grad_sum(), y.grad(), a.value());
  });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
