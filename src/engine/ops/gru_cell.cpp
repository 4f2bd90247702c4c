#include "engine/kernels/gru.h"
#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var gru_cell(Var gates_x, Var gates_h, Var h, std::span<const std::int32_t> lengths, std::int64_t t) {
  const Shape state = h.shape();
  require<ShapeError>(
      state.rank() == 2 && gates_x.shape() == state.with_last(3 * state.last()) &&
          gates_h.shape() == gates_x.shape(),
      "gru_cell: gates {} and {}, state {}: the state must be (batch, channels) and both gates (batch, 3 channels)",
      gates_x.shape(), gates_h.shape(), state);
  require<ShapeError>(lengths.empty() || static_cast<std::int64_t>(lengths.size()) == state[0],
                      "gru_cell: {} lengths for a batch of {}", lengths.size(), state[0]);
  const MatrixView gates = h.tape().scratch(state[0], 3 * state[1]);
  const kernels::GruStep step{h.tape().keep(lengths), t};
  return record(
      "gru_cell", state, {gates_x, gates_h, h},
      [=](Var y) {
        kernels::gru_cell_forward(y.value(), gates, gates_x.value(), gates_h.value(), h.value(), step);
      },
      [=](Var y) {
        kernels::gru_cell_backward(gates_x.grad_accumulator(), gates_h.grad_accumulator(),
                                   h.grad_accumulator(), y.grad(), gates_h.value(), h.value(), gates, step);
      });
}

std::vector<GradcheckCase> gradcheck_gru_cell() {
  static const std::vector<std::int32_t> lengths{3, 1};
  const auto inputs = [](std::int64_t batch, std::int64_t hidden) {
    return std::vector{normal("gates_x", {batch, 3 * hidden}), normal("gates_h", {batch, 3 * hidden}),
                       normal("h", {batch, hidden})};
  };
  const auto cell = [](std::span<const std::int32_t> ends, std::int64_t t) {
    return [=](Tape&, Inputs in) { return gru_cell(in[0], in[1], in[2], ends, t); };
  };
  return {{"gru_cell", "", inputs(2, 5), cell({}, 0)},
          {"gru_cell", "one sequence, 37 channels", inputs(1, 37), cell({}, 0)},
          {"gru_cell", "one channel", inputs(3, 1), cell({}, 0)},
          {"gru_cell", "a sequence that has ended", inputs(2, 5), cell(lengths, 1)}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
