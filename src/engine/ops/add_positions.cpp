#include "thimble/engine/ops.h"

#include "engine/kernels/elementwise.h"
#include "engine/kernels/embedding.h"
#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var add_positions(Var x, Var positions) {
  require<ShapeError>(
      x.shape().rank() == 3 && positions.shape().rank() == 2 && positions.shape()[1] == x.shape()[2] &&
          positions.shape()[0] >= x.shape()[1],
      "add_positions: x {}, positions {}: x must be (batch, time, channels), positions at least (time, channels)",
      x.shape(), positions.shape());
  const std::int64_t length = x.shape()[1];
  return record(
      "add_positions", x.shape(), {x, positions},
      [=](Var y) { kernels::add_positions_forward(y.value(), x.value(), positions.value(), length); },
      [=](Var y) {
        kernels::accumulate(x.grad_accumulator(), y.grad());
        kernels::add_positions_backward(positions.zeroed_grad_accumulator(), y.grad(), length);
      });
}

std::vector<GradcheckCase> gradcheck_add_positions() {
  const auto sum = [](Tape&, Inputs in) { return add_positions(in[0], in[1]); };
  return {{"add_positions", "", {normal("x", {2, 3, 5}), normal("positions", {3, 5})}, sum},
          {"add_positions", "longer table", {normal("x", {2, 3, 5}), normal("positions", {4, 5})}, sum}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
