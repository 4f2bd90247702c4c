#include "thimble/engine/ops.h"

#include "engine/kernels/elementwise.h"
#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var tanh(Var x) {
  return record(
      "tanh", x.shape(), {x}, [=](Var y) { kernels::tanh_forward(y.value(), x.value()); },
      [=](Var y) { kernels::tanh_backward(x.grad_accumulator(), y.grad(), y.value()); });
}

std::vector<GradcheckCase> gradcheck_tanh() {
  return unary("tanh", [](Var x) { return tanh(x); });
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
