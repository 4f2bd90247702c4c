// Matrix products; the only file that calls BLAS. They run on the calling thread: work is split over shards,
// and results must not depend on the number of threads.
#pragma once

#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

enum class Op { none, transpose };

// Computes c = alpha op(a) op(b) + beta c, with c (M, N), op(a) (M, K), op(b) (K, N). beta = 0 overwrites c,
// NaN included. Throws ShapeError when the sizes do not match.
void gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha, Real beta);

// Adds op_a(a) op_b(b) to a gradient c; does nothing if c has no data. Throws ShapeError as gemm().
void gemm_add(GradientView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b);

// Returns whether OpenBLAS has a kernel for small matrices on this CPU. It packs nothing, so gemm() cuts
// larger products into parts for it, which is faster by 5 to 20 %. There is none for op_b = transpose.
bool cuts_products();

// The sizes of a part of (M, K) (K, N), each at least 1 where M, N and K are; the last ones may be smaller.
struct Part {
  std::int64_t m, n, k;
};
// Returns the sizes of the parts that gemm() cuts a product into.
Part part_of(Op op_a, std::int64_t m, std::int64_t n, std::int64_t k);

// Computes gemm() in parts on any CPU, for op_b = none and K >= 1.
void gemm_in_parts(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha,
                   Real beta);

// Returns the rows of c (M, N) = a (M, K) b (K, N) in one part, of which all columns are computed before the
// next rows. N, K >= 1.
std::int64_t rows_per_part(std::int64_t n, std::int64_t k);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
