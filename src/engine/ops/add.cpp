#include "thimble/engine/ops.h"

#include "engine/kernels/elementwise.h"
#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var add(Var a, Var b) {
  require<ShapeError>(a.shape() == b.shape(), "add: a {} + b {}: the shapes must be equal", a.shape(),
                      b.shape());
  return record(
      "add", a.shape(), {a, b}, [=](Var y) { kernels::add_forward(y.value(), a.value(), b.value()); },
      [=](Var y) {
        kernels::accumulate(a.grad_accumulator(), y.grad());
        kernels::accumulate(b.grad_accumulator(), y.grad());
      });
}

std::vector<GradcheckCase> gradcheck_add() {
  return {
      {"add",
       "",
       {normal("a", {2, 3, 5}), normal("b", {2, 3, 5})},
       [](Tape&, Inputs in) { return add(in[0], in[1]); }},
      {"add", "the same twice", {normal("a", {2, 3})}, [](Tape&, Inputs in) { return add(in[0], in[0]); }}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
