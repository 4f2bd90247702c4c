// One step of a gated recurrent unit (Cho et al. 2014), as torch.nn.GRUCell, whose reset gate acts on the
// product with the state. Its inputs are gates_x = x W_ih^T + b_ih and gates_h = h W_hh^T + b_hh, both (B,
// 3H): reset, update, candidate.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// The sequences that step t updates: those longer than t, or all without lengths. The others keep their
// state.
struct GruStep {
  std::span<const std::int32_t> lengths = {};  // (B)
  std::int64_t t = 0;

  bool takes_part(std::int64_t sequence) const {
    return lengths.empty() || t < lengths[static_cast<std::size_t>(sequence)];
  }
};

// Computes the next state y (B, H) from h (B, H). Saves gates (B, 3H) of the sequences that take part.
void gru_cell_forward(MatrixView y, MatrixView gates, ConstMatrixView gates_x, ConstMatrixView gates_h,
                      ConstMatrixView h, const GruStep& step);

// Adds to dgates_x, dgates_h (B, 3H) and dh (B, H); skips those without data.
void gru_cell_backward(GradientView dgates_x, GradientView dgates_h, GradientView dh, ConstMatrixView dy,
                       ConstMatrixView gates_h, ConstMatrixView h, ConstMatrixView gates,
                       const GruStep& step);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
