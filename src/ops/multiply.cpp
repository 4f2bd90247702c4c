#include "thimble/core/error.h"
#include "thimble/kernels/elementwise.h"
#include "thimble/ops/ops.h"

#include "ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

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

std::vector<GradcheckCase> gradcheck_multiply() {
  const auto product = [](Tape&, Inputs in) { return multiply(in[0], in[1]); };
  return {{"multiply", "", {normal("a", {2, 3, 5}), normal("b", {2, 3, 5})}, product},
          {"multiply", "40 columns", {normal("a", {1, 40}), normal("b", {1, 40})}, product},
          {"multiply", "the same twice", {normal("a", {2, 3})}, [](Tape&, Inputs in) {
             return multiply(in[0], in[0]);
           }}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
