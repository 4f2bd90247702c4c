// Matrix products. Each element of a product is one chain of fused multiply-adds in ascending order of the
// inner index, so its bits depend on nothing but the operands: not on the sizes of vectors and blocks, and not
// on threads. Products run on the calling thread: work is split over shards.
#pragma once

#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

enum class Op { none, transpose };

// A right operand (rows, cols) in panels: columns 0 .. w-1 of all rows, then w .. 2w-1, and so on, with the width
// w that the kernels of the CPU take. `panel` is the distance between the starts of two panels, in elements.
// Without data: not packed.
struct PackedView {
  const Real* data = nullptr;
  std::int64_t rows = 0, cols = 0, panel = 0;

  // Return a part, or a view without data where there is none: columns must start with a panel.
  PackedView row_block(std::int64_t first, std::int64_t count) const;
  PackedView column_block(std::int64_t first, std::int64_t count) const;
};

// Returns the number of elements that (rows, cols) takes in panels. 0 with the OpenBLAS backend, which packs
// its operands itself.
std::int64_t packed_size(std::int64_t rows, std::int64_t cols);

// Packs op(b) into `to`, which has packed_size() elements.
PackedView pack(Real* to, ConstMatrixView b, Op op_b);

// Computes c = op(a) op(b) with c (M, N), op(a) (M, K), op(b) (K, N). Throws ShapeError when the sizes do not
// match, and ConfigError when the program selected a backend of no known name.
void gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b);

// Adds op(a) op(b) to a gradient c, or does nothing if c has no data. Throws as gemm().
void gemm_add(GradientView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b);

// Computes c = start + a b with c (M, N), a (M, K), b (K, N). start is (M, N), also c itself, or (1, N) for equal
// rows, or without data for 0. Does not check sizes.
void gemm_packed(MatrixView c, ConstMatrixView start, ConstMatrixView a, PackedView b);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
