#include "thimble/ops/ops.h"

#include "thimble/kernels/gelu.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

template <class Forward>
Var gelu_with(const char* name, Var x, Forward forward) {
  Tape& tape = x.tape();
  const Var y = tape.node(name, x.shape(), {x});
  const MatrixView slope = tape.scratch(x.shape().rows(), x.shape().last());
  forward(y.value(), slope, x.value());
  tape.on_backward(y, [x, y, slope] { kernels::gelu_backward(x.grad_sum(), y.grad(), slope); });
  return y;
}

}  // namespace

Var gelu(Var x) { return gelu_with("gelu", x, kernels::gelu_erf_forward); }

Var gelu_tanh(Var x) { return gelu_with("gelu_tanh", x, kernels::gelu_tanh_forward); }

Var silu(Var x) { return gelu_with("silu", x, kernels::silu_forward); }

}  // namespace thimble::inline THIMBLE_PRECISION
