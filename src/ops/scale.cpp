#include "thimble/ops/ops.h"

#include "thimble/kernels/elementwise.h"

namespace thimble::inline THIMBLE_PRECISION {

Var scale(Var x, Real factor) {
  return record(
      "scale", x.shape(), {x}, [=](Var y) { kernels::scale_forward(y.value(), x.value(), factor); },
      [=](Var y) { kernels::scale_backward(x.grad_accumulator(), y.grad(), factor); });
}

}  // namespace thimble::inline THIMBLE_PRECISION
