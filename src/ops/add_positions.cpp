#include "thimble/ops/ops.h"

#include "thimble/core/error.h"
#include "thimble/kernels/elementwise.h"
#include "thimble/kernels/embedding.h"

namespace thimble::inline THIMBLE_PRECISION {

Var add_positions(Var x, Var positions) {
  require<ShapeError>(
      x.shape().rank() == 3 && positions.shape().rank() == 2 && positions.shape()[1] == x.shape()[2] &&
          positions.shape()[0] >= x.shape()[1],
      "add_positions: x {}, positions {}: x must be (batch, time, channels), positions at least (time, "
      "channels)",
      x.shape(), positions.shape());
  Tape& tape = x.tape();
  const std::int64_t length = x.shape()[1];
  const Var y = tape.node("add_positions", x.shape(), {x, positions});
  kernels::add_positions_forward(y.value(), x.value(), positions.value(), length);
  tape.on_backward(y, [x, positions, y, length] {
    if (x.needs_grad()) kernels::accumulate(x.grad_sum(), y.grad());
    if (positions.needs_grad()) kernels::add_positions_backward(positions.grad(), y.grad(), length);
  });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
