#include "thimble/engine/ops.h"

#include "engine/autograd/held_signs.h"
#include "engine/kernels/elementwise.h"
#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var relu(Var x) {
  return record(
      "relu", x.shape(), {x},
      [=](Var y) {
        kernels::relu_forward(y.value(), x.value());
        HeldSigns::hold(y.value(), x.value());
      },
      [=](Var y) { kernels::relu_backward(x.grad_accumulator(), y.grad(), y.value()); });
}

std::vector<GradcheckCase> gradcheck_relu() {
  return unary("relu", [](Var x) { return relu(x); });
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
