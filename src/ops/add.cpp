#include "thimble/ops/ops.h"

#include "thimble/core/error.h"
#include "thimble/kernels/elementwise.h"

namespace thimble::inline THIMBLE_PRECISION {

Var add(Var a, Var b) {
  require<ShapeError>(a.shape() == b.shape(), "add: a {} + b {}: the shapes must be equal", a.shape(),
                      b.shape());
  Tape& tape = a.tape();
  const Var y = tape.node("add", a.shape(), {a, b});
  kernels::add_forward(y.value(), a.value(), b.value());
  tape.on_backward(y, [a, b, y] {
    if (a.needs_grad()) kernels::accumulate(a.grad_sum(), y.grad());
    if (b.needs_grad()) kernels::accumulate(b.grad_sum(), y.grad());
  });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
