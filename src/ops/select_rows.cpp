#include "thimble/core/error.h"
#include "thimble/kernels/embedding.h"
#include "thimble/ops/ops.h"

namespace thimble::inline THIMBLE_PRECISION {

// A look-up in x, row by row, as embedding is one in its table.
Var select_rows(Var x, std::span<const std::int32_t> rows) {
  const std::int64_t count = x.shape().rows();
  const auto bad = std::ranges::find_if(rows, [=](auto row) { return row < 0 || row >= count; });
  require<ShapeError>(bad == rows.end(), "select_rows: row {} of x {}, which has {}",
                      bad == rows.end() ? 0 : *bad, x.shape(), count);
  Tape& tape = x.tape();
  const Var y = tape.node("select_rows", {static_cast<std::int64_t>(rows.size()), x.shape().last()}, {x});
  const auto kept = tape.keep(rows);
  kernels::embedding_forward(y.value(), x.value(), kept);
  tape.on_backward(y, [x, y, kept] { kernels::embedding_backward(x.grad(), y.grad(), kept); });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
