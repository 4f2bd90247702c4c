// Matrix products, the one place where BLAS is called. Always on the calling thread: work is split over
// shards, and results must not depend on the number of threads.
#pragma once

#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

enum class Op { none, transpose };

// c = alpha op(a) op(b) + beta c, with c (M, N), op(a) (M, K), op(b) (K, N). beta = 0 overwrites c, whatever
// it held. Throws ShapeError when the inner or outer sizes do not fit.
void gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha, Real beta);

// Adds op_a(a) op_b(b) to a gradient c; does nothing if c has no data. Throws ShapeError as gemm().
void gemm_add(GradientView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b);

// Where OpenBLAS has a kernel for small matrices, which packs nothing, gemm cuts larger products into parts
// that suit it: faster by 5 to 20 %. It has none for op_b = transpose.
bool cuts_products();

// The sizes of a part of (M, K) (K, N), each at least 1 where M, N and K are; the last ones may be smaller.
struct Part {
  std::int64_t m, n, k;
};
Part part_of(Op op_a, std::int64_t m, std::int64_t n, std::int64_t k);

// What gemm() does where it cuts products, on any CPU: for op_b = none and K >= 1.
void gemm_in_parts(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha,
                   Real beta);

// The rows of c (M, N) = a (M, K) b (K, N) in one part; all their columns are done before the next rows. N, K
// >= 1.
std::int64_t rows_per_part(std::int64_t n, std::int64_t k);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
