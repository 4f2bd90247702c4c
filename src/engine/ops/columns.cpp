#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Columns::Columns(Var x) : source(x), first(0), count(x.shape().last()) {}

Columns::Columns(Var x, std::int64_t first_column, std::int64_t columns)
    : source(x), first(first_column), count(columns) {
  require<ShapeError>(first >= 0 && count >= 0 && first <= x.shape().last() - count,
                      "columns: {} from column {} of {}: they must lie inside the last dimension", count,
                      first, x.shape());
}

GradientView Columns::grad_accumulator() const {
  return count == source.shape().last() ? source.grad_accumulator() : zeroed_grad_accumulator();
}

GradientView Columns::zeroed_grad_accumulator() const {
  return source.zeroed_grad_accumulator().column_block(first, count);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
