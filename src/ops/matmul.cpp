#include "thimble/ops/ops.h"

#include "thimble/core/error.h"
#include "thimble/kernels/gemm.h"

namespace thimble::inline THIMBLE_PRECISION {

// dA += dY B^T, dB += A^T dY
Var matmul(Var a, Var b) {
  require<ShapeError>(a.shape().rank() == 2 && b.shape().rank() == 2,
                      "matmul: a {} * b {}: both must be matrices", a.shape(), b.shape());
  require<ShapeError>(a.shape()[1] == b.shape()[0],
                      "matmul: a {} * b {}: inner dimensions must match ({} vs {})", a.shape(), b.shape(),
                      a.shape()[1], b.shape()[0]);
  using kernels::Op;
  Tape& tape = a.tape();
  const Var y = tape.node("matmul", {a.shape()[0], b.shape()[1]}, {a, b});
  kernels::gemm(y.value(), a.value(), Op::none, b.value(), Op::none, 1, 0);
  tape.on_backward(y, [a, b, y] {
    if (a.needs_grad()) {
      const GradientView da = a.grad_sum();
      kernels::gemm(da, y.grad(), Op::none, b.value(), Op::transpose, 1, da.empty ? 0 : 1);
    }
    if (b.needs_grad()) {
      const GradientView db = b.grad_sum();
      kernels::gemm(db, a.value(), Op::transpose, y.grad(), Op::none, 1, db.empty ? 0 : 1);
    }
  });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
