#include "engine/kernels/attention/head_linear.h"

#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var head_linear(Columns x, Var weight, std::int64_t heads) {
  const Shape& w = weight.shape();
  require<ShapeError>(
      w.rank() == 3 && w[0] == heads && heads > 0 && x.count == heads * w[1],
      "head_linear: x {}, weight {}, {} heads: weight must be (heads, D, E) and x must have heads D columns",
      x.shape(), w, heads);
  const double flops = 2.0 * static_cast<double>(x.source.shape().rows()) * w.elements();
  return record(
      "head_linear", x.shape().with_last(heads * w[2]), {x.source, weight},
      [=](Var y) { kernels::head_linear_forward(y.value(), x.value(), weight.value(), heads); },
      [=](Var y) {
        kernels::head_linear_backward(x.grad_accumulator(), weight.grad_accumulator(), y.grad(), x.value(),
                                      weight.value(), heads);
      },
      {.forward = flops, .backward = 2 * flops});
}

std::vector<GradcheckCase> gradcheck_head_linear() {
  const auto heads = [](std::int64_t count) {
    return [count](Tape&, Inputs in) { return head_linear(in[0], in[1], count); };
  };
  return {{"head_linear", "", {normal("x", {2, 3, 10}), normal("weight", {2, 5, 7})}, heads(2)},
          {"head_linear", "one of all", {normal("x", {1, 1}), normal("weight", {1, 1, 1})}, heads(1)},
          {"head_linear", "40 columns", {normal("x", {19, 40}), normal("weight", {1, 40, 37})}, heads(1)},
          {"head_linear",
           "a block of columns, and the whole",
           {normal("x", {2, 3, 10}), normal("weight", {2, 2, 5})},
           [](Tape&, Inputs in) {
             return add(head_linear({in[0], 3, 4}, in[1], 2), in[0]);
           }}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
