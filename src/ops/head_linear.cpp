#include "thimble/kernels/head_linear.h"

#include "thimble/core/error.h"
#include "thimble/ops/ops.h"

namespace thimble::inline THIMBLE_PRECISION {

Var head_linear(Columns x, Var weight, std::int64_t heads) {
  const Shape& w = weight.shape();
  require<ShapeError>(
      w.rank() == 3 && w[0] == heads && heads > 0 && x.count == heads * w[1],
      "head_linear: x {}, weight {}, {} heads: weight must be (heads, D, E), and x have heads D columns",
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

}  // namespace thimble::inline THIMBLE_PRECISION
