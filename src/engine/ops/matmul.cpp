#include "thimble/engine/ops.h"

#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"
#include "thimble/engine/gemm.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Backward: da += dy b^T, db += a^T dy.
Var matmul(Var a, Var b) {
  require<ShapeError>(a.shape().rank() == 2 && b.shape().rank() == 2,
                      "matmul: a {} * b {}: both must be matrices", a.shape(), b.shape());
  require<ShapeError>(a.shape()[1] == b.shape()[0],
                      "matmul: a {} * b {}: inner dimensions must match ({} vs {})", a.shape(), b.shape(),
                      a.shape()[1], b.shape()[0]);
  const double flops = 2.0 * static_cast<double>(a.shape().elements()) * b.shape()[1];
  using kernels::Op;
  return record(
      "matmul", {a.shape()[0], b.shape()[1]}, {a, b},
      [=](Var y) { kernels::gemm(y.value(), a.value(), Op::none, b.value(), Op::none); },
      [=](Var y) {
        kernels::gemm_add(a.grad_accumulator(), y.grad(), Op::none, b.value(), Op::transpose);
        kernels::gemm_add(b.grad_accumulator(), a.value(), Op::transpose, y.grad(), Op::none);
      },
      {.forward = flops, .backward = 2 * flops});
}

std::vector<GradcheckCase> gradcheck_matmul() {
  const auto product = [](Tape&, Inputs in) { return matmul(in[0], in[1]); };
  return {{"matmul", "", {normal("a", {3, 5}), normal("b", {5, 7})}, product},
          {"matmul", "inner size 1", {normal("a", {2, 1}), normal("b", {1, 3})}, product}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
