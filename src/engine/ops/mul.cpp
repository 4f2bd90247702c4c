#include "engine/kernels/elementwise.h"
#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var mul(Var a, Var b) {
  require<ShapeError>(a.shape() == b.shape(), "mul: a {} * b {}: the shapes must be equal", a.shape(),
                      b.shape());
  return record(
      "mul", a.shape(), {a, b}, [=](Var y) { kernels::mul_forward(y.value(), a.value(), b.value()); },
      [=](Var y) {
        kernels::mul_backward(a.grad_accumulator(), y.grad(), b.value());
        kernels::mul_backward(b.grad_accumulator(), y.grad(), a.value());
      });
}

std::vector<GradcheckCase> gradcheck_mul() {
  const auto product = [](Tape&, Inputs in) { return mul(in[0], in[1]); };
  return {
      {"mul", "", {normal("a", {2, 3, 5}), normal("b", {2, 3, 5})}, product},
      {"mul", "40 columns", {normal("a", {1, 40}), normal("b", {1, 40})}, product},
      {"mul", "the same twice", {normal("a", {2, 3})}, [](Tape&, Inputs in) { return mul(in[0], in[0]); }}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
