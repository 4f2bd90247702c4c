#include "thimble/core/error.h"
#include "thimble/kernels/elementwise.h"
#include "thimble/ops/ops.h"

namespace thimble::inline THIMBLE_PRECISION {

Var multiply(Var a, Var b) {
  require<ShapeError>(a.shape() == b.shape(), "multiply: a {} * b {}: the shapes must be equal", a.shape(),
                      b.shape());
  return record(
      "multiply", a.shape(), {a, b},
      [=](Var y) { kernels::multiply_forward(y.value(), a.value(), b.value()); },
      [=](Var y) {
        kernels::multiply_backward(a.grad_accumulator(), y.grad(), b.value());
        kernels::multiply_backward(b.grad_accumulator(), y.grad(), a.value());
      });
}

}  // namespace thimble::inline THIMBLE_PRECISION
