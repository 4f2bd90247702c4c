#include "thimble/ops/ops.h"

#include "thimble/kernels/elementwise.h"
#include "thimble/kernels/gelu.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

template <class Forward>
Var gelu_with(const char* name, Var x, Forward forward) {
  const MatrixView derivative = x.tape().scratch(x.shape().rows(), x.shape().last());
  return record(
      name, x.shape(), {x}, [=](Var y) { forward(y.value(), derivative, x.value()); },
      [=](Var y) { kernels::multiply_backward(x.grad_accumulator(), y.grad(), derivative); });
}

}  // namespace

Var gelu(Var x) { return gelu_with("gelu", x, kernels::gelu_erf_forward); }

Var gelu_tanh(Var x) { return gelu_with("gelu_tanh", x, kernels::gelu_tanh_forward); }

Var silu(Var x) { return gelu_with("silu", x, kernels::silu_forward); }

}  // namespace thimble::inline THIMBLE_PRECISION
