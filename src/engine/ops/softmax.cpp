#include "thimble/engine/ops.h"

#include "engine/kernels/softmax.h"
#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var softmax(Var x) {
  require<ShapeError>(x.shape().last() > 0, "softmax: x {}: the last dimension must not be empty", x.shape());
  return record(
      "softmax", x.shape(), {x}, [=](Var y) { kernels::softmax_forward(y.value(), x.value()); },
      [=](Var y) { kernels::softmax_backward(x.grad_accumulator(), y.grad(), y.value()); });
}

std::vector<GradcheckCase> gradcheck_softmax() {
  std::vector<GradcheckCase> cases = unary("softmax", [](Var x) { return softmax(x); });
  cases.push_back({"softmax", "one column", {zero_gradient(normal("x", {3, 1}))}, cases[0].f});
  return cases;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
