#include "thimble/ops/ops.h"

#include "thimble/core/error.h"

namespace thimble::inline THIMBLE_PRECISION {

Var dropout(Var x, Real p, const kernels::DropoutKey& key) {
  require<ShapeError>(p >= 0 && p < 1, "dropout: the probability is {}, it must be at least 0 and below 1",
                      p);
  require<ShapeError>(x.shape().rank() >= 1 && x.shape()[0] > 0, "dropout: x {} has no samples", x.shape());
  Tape& tape = x.tape();
  const Var y = tape.node("dropout", x.shape(), {x});
  const MatrixView factor = tape.scratch(x.shape().rows(), x.shape().last());
  kernels::dropout_factors(factor, p, key, std::max<std::int64_t>(1, x.shape().rows() / x.shape()[0]));
  kernels::dropout_forward(y.value(), x.value(), factor);
  tape.on_backward(y, [x, y, factor] { kernels::dropout_backward(x.grad_sum(), y.grad(), factor); });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
