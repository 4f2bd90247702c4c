#include "thimble/engine/ops.h"

#include "engine/kernels/elementwise.h"
#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var scale(Var x, Real factor) {
  return record(
      "scale", x.shape(), {x}, [=](Var y) { kernels::scale_forward(y.value(), x.value(), factor); },
      [=](Var y) { kernels::scale_backward(x.grad_accumulator(), y.grad(), factor); });
}

std::vector<GradcheckCase> gradcheck_scale() {
  return unary("scale", [](Var x) { return scale(x, Real(-1.7)); });
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
