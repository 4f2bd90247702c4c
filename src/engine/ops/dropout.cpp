#include "thimble/engine/ops.h"

#include "engine/kernels/dropout.h"
#include "engine/kernels/elementwise.h"
#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var dropout(Var x, Real p, const kernels::DropoutKey& key) {
  require<ShapeError>(p >= 0 && p < 1, "dropout: the probability ({}) must be at least 0 and below 1", p);
  require<ShapeError>(x.shape().rank() >= 1 && x.shape()[0] > 0, "dropout: x {} has no samples", x.shape());
  const MatrixView factor = x.tape().scratch(x.shape().rows(), x.shape().last());
  const std::int64_t rows = std::max<std::int64_t>(1, x.shape().rows() / x.shape()[0]);
  return record(
      "dropout", x.shape(), {x},
      [=](Var y) {
        kernels::dropout_factors(factor, p, key, rows);
        kernels::mul_forward(y.value(), x.value(), factor);
      },
      [=](Var y) { kernels::mul_backward(x.grad_accumulator(), y.grad(), factor); });
}

std::vector<GradcheckCase> gradcheck_dropout() {
  const kernels::DropoutKey key{Random(3, Stream::dropout), 1, 0, 2};
  return unary("dropout", [key](Var x) { return dropout(x, Real(0.4), key); });
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
