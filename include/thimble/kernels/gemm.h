// Matrix products, the one place where BLAS is called. Always on the calling thread: work is split over
// shards, and results must not depend on the number of threads.
#pragma once

#include "thimble/tensor/matrix_view.h"

namespace thimble::inline THIMBLE_PRECISION::kernels {

enum class Op { none, transpose };

// c = alpha op(a) op(b) + beta c, with c (M, N), op(a) (M, K), op(b) (K, N). beta = 0 overwrites c, whatever
// it held. Throws ShapeError when the inner or outer sizes do not fit.
void gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha, Real beta);

}  // namespace thimble::inline THIMBLE_PRECISION::kernels
