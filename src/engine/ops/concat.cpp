#include "engine/kernels/elementwise.h"
#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var concat(Var a, Var b) {
  const Shape &first = a.shape(), &second = b.shape();
  require<ShapeError>(first.rank() > 0 && second == first.with_last(second.last()),
                      "concat: a {}, b {}: all dimensions but the last must be equal", first, second);
  const std::int64_t left = first.last(), right = second.last();
  return record(
      "concat", first.with_last(left + right), {a, b},
      [=](Var y) {
        kernels::accumulate({y.value().column_block(0, left), true}, a.value());
        kernels::accumulate({y.value().column_block(left, right), true}, b.value());
      },
      [=](Var y) {
        kernels::accumulate(a.grad_accumulator(), y.grad().column_block(0, left));
        kernels::accumulate(b.grad_accumulator(), y.grad().column_block(left, right));
      });
}

std::vector<GradcheckCase> gradcheck_concat() {
  const auto joined = [](Tape&, Inputs in) { return concat(in[0], in[1]); };
  return {{"concat", "", {normal("a", {2, 3, 5}), normal("b", {2, 3, 4})}, joined},
          {"concat", "17 columns and one", {normal("a", {1, 17}), normal("b", {1, 1})}, joined}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
