#include "thimble/ops/ops.h"

#include "thimble/core/error.h"
#include "thimble/kernels/softmax.h"

namespace thimble::inline THIMBLE_PRECISION {

Var softmax(Var x) {
  require<ShapeError>(x.shape().last() > 0, "softmax: x {}: the last dimension must not be empty", x.shape());
  return record(
      "softmax", x.shape(), {x}, [=](Var y) { kernels::softmax_forward(y.value(), x.value()); },
      [=](Var y) { kernels::softmax_backward(x.grad_accumulator(), y.grad(), y.value()); });
}

}  // namespace thimble::inline THIMBLE_PRECISION
