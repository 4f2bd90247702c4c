#include "thimble/engine/ops.h"

#include <algorithm>
#include <iterator>

#include "engine/kernels/elementwise.h"
#include "engine/kernels/gelu.h"
#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

template <class Forward>
Var gelu_with(const char* name, Var x, Forward forward) {
  const MatrixView derivative = x.tape().scratch(x.shape().rows(), x.shape().last());
  return record(
      name, x.shape(), {x}, [=](Var y) { forward(y.value(), derivative, x.value()); },
      [=](Var y) { kernels::mul_backward(x.grad_accumulator(), y.grad(), derivative); });
}

}  // namespace

Var gelu(Var x) { return gelu_with("gelu", x, kernels::gelu_erf_forward); }

Var gelu_tanh(Var x) { return gelu_with("gelu_tanh", x, kernels::gelu_tanh_forward); }

Var silu(Var x) { return gelu_with("silu", x, kernels::silu_forward); }

std::vector<GradcheckCase> gradcheck_gelu() {
  std::vector<GradcheckCase> cases = unary("gelu", [](Var x) { return gelu(x); });
  std::ranges::copy(unary("gelu_tanh", [](Var x) { return gelu_tanh(x); }), std::back_inserter(cases));
  std::ranges::copy(unary("silu", [](Var x) { return silu(x); }), std::back_inserter(cases));
  return cases;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
