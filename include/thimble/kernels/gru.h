// One step of a gated recurrent unit (Cho et al. 2014, in the form of torch.nn.GRUCell, whose reset gate acts
// on the product with the state). The products with the weights are made before: gates_x = x W_ih^T + b_ih
// and gates_h = h W_hh^T + b_hh, both (B, 3H): reset, update, candidate.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Which sequences take part in step t: those longer than t. The others keep their state. Empty: all.
struct GruStep {
  std::span<const std::int32_t> lengths = {};  // (B)
  std::int64_t t = 0;

  bool takes_part(std::int64_t sequence) const {
    return lengths.empty() || t < lengths[static_cast<std::size_t>(sequence)];
  }
};

// y (B, H) is the next state, h (B, H) the one before. Saves gates (B, 3H) of the sequences that take part.
void gru_cell_forward(MatrixView y, MatrixView gates, ConstMatrixView gates_x, ConstMatrixView gates_h,
                      ConstMatrixView h, const GruStep& step);

// Adds to dgates_x, dgates_h (B, 3H) and dh (B, H); a view without data is skipped.
void gru_cell_backward(GradientView dgates_x, GradientView dgates_h, GradientView dh, ConstMatrixView dy,
                       ConstMatrixView gates_h, ConstMatrixView h, ConstMatrixView gates,
                       const GruStep& step);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
