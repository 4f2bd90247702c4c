#include "thimble/kernels/softcap.h"
#include "ops/gradcheck_inputs.h"
#include "thimble/core/error.h"
#include "thimble/ops/ops.h"

namespace thimble::inline THIMBLE_PRECISION {

Var softcap(Var x, Real cap) {
  require<ShapeError>(cap > 0, "softcap: cap ({}) must be above 0", cap);
  return record(
      "softcap", x.shape(), {x}, [=](Var y) { kernels::softcap_forward(y.value(), x.value(), cap); },
      [=](Var y) { kernels::softcap_backward(x.grad_accumulator(), y.grad(), y.value(), cap); });
}

std::vector<GradcheckCase> gradcheck_softcap() {
  return unary("softcap", [](Var x) { return softcap(x, Real(1.5)); });
}

}  // namespace thimble::inline THIMBLE_PRECISION
