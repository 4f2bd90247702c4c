#include "engine/kernels/attention/head_norm.h"

#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var head_norm(Columns x, std::int64_t heads, Real epsilon) {
  require<ShapeError>(heads > 0 && x.count > 0 && x.count % heads == 0,
                      "head_norm: x {}: heads ({}) must divide its columns ({})", x.shape(), heads, x.count);
  const MatrixView rrms = x.source.tape().scratch(x.source.shape().rows(), heads);
  return record(
      "head_norm", x.shape(), {x.source},
      [=](Var y) { kernels::head_norm_forward(y.value(), rrms, x.value(), heads, epsilon); },
      [=](Var y) { kernels::head_norm_backward(x.grad_accumulator(), y.grad(), y.value(), rrms, heads); });
}

std::vector<GradcheckCase> gradcheck_head_norm() {
  const auto heads = [](std::int64_t count) {
    return [count](Tape&, Inputs in) { return head_norm(in[0], count); };
  };
  return {{"head_norm", "", {normal("x", {2, 3, 10})}, heads(2)},
          {"head_norm", "40 columns", {normal("x", {3, 40})}, heads(1)},
          {"head_norm", "small", {normal("x", {1, 1, 9}, Real(0.001))}, heads(3)},
          {"head_norm", "a block of columns, and the whole", {normal("x", {2, 3, 10})}, [](Tape&, Inputs in) {
             return concat(head_norm({in[0], 3, 4}, 2), in[0]);
           }}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
