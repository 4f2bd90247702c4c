#include "engine/kernels/embedding.h"
#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Uses the kernels of embedding(), with x as the table.
Var select_rows(Var x, std::span<const std::int32_t> rows) {
  const std::int64_t count = x.shape().rows();
  const auto bad = std::ranges::find_if(rows, [=](auto row) { return row < 0 || row >= count; });
  require<ShapeError>(bad == rows.end(), "select_rows: row {} of x {}, which has {} rows",
                      bad == rows.end() ? 0 : *bad, x.shape(), count);
  const auto kept = x.tape().keep(rows);
  return record(
      "select_rows", {std::ssize(rows), x.shape().last()}, {x},
      [=](Var y) { kernels::embedding_forward(y.value(), x.value(), kept); },
      [=](Var y) { kernels::embedding_backward(x.zeroed_grad_accumulator(), y.grad(), kept); });
}

std::vector<GradcheckCase> gradcheck_select_rows() {
  static const std::vector<std::int32_t> rows{1, 4, 4, 0};
  return {{"select_rows", "one twice", {normal("x", {2, 3, 7})}, [](Tape&, Inputs in) {
             return select_rows(in[0], rows);
           }}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
