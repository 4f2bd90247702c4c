#include "engine/kernels/attention/rotary.h"

#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var rotary(Var x, std::int64_t first, std::int64_t count, std::int64_t d_key, std::int64_t first_position,
           const RotaryConfig& config) {
  const Shape shape = x.shape();
  require<ShapeError>(shape.rank() == 3, "rotary: x {} must be (batch, time, channels)", shape);
  require<ShapeError>(d_key > 0 && d_key % 2 == 0 && count % d_key == 0,
                      "rotary: d_key ({}) must be even and divide the rotated columns ({})", d_key, count);
  require<ShapeError>(first_position >= 0, "rotary: the first position ({}) must be at least 0",
                      first_position);
  const Columns rotated(x, first, count);  // throws for columns outside of x
  const kernels::RotaryColumns columns{rotated.first, rotated.count, d_key, config.layout};
  const MatrixView table = x.tape().scratch(shape[1], 2 * d_key);
  return record(
      "rotary", shape, {x},
      [=](Var y) {
        kernels::rotary_table(table, first_position, config);
        kernels::rotary_forward(y.value(), x.value(), table, columns);
      },
      [=](Var y) { kernels::rotary_backward(x.grad_accumulator(), y.grad(), table, columns); });
}

std::vector<GradcheckCase> gradcheck_rotary() {
  const auto rotate = [](std::int64_t first, std::int64_t count, std::int64_t d_key, std::int64_t position,
                         const RotaryConfig& config = {}) {
    return [=](Tape&, Inputs in) { return rotary(in[0], first, count, d_key, position, config); };
  };
  const RotaryConfig halves{.layout = RotaryPairs::halves, .base = 500};
  return {{"rotary", "", {normal("x", {2, 3, 12})}, rotate(0, 12, 6, 0)},
          {"rotary", "a block of columns", {normal("x", {2, 3, 11})}, rotate(5, 4, 2, 7)},
          {"rotary", "one token, 40 columns", {normal("x", {1, 1, 40})}, rotate(0, 40, 40, 3)},
          {"rotary", "halves, a block of columns", {normal("x", {2, 3, 11})}, rotate(2, 8, 4, 7, halves)},
          {"rotary", "halves, 38 columns", {normal("x", {1, 2, 38})}, rotate(0, 38, 38, 3, halves)},
          {"rotary", "no column", {normal("x", {1, 2, 3})}, rotate(1, 0, 2, 0)}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
