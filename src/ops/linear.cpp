#include "thimble/ops/ops.h"

#include "thimble/core/error.h"
#include "thimble/kernels/linear.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

ConstMatrixView transposed(Var weight) {
  if (!kernels::wants_transposed()) return {};
  if (const ConstMatrixView known = weight.transposed(); known.data != nullptr) return known;
  const MatrixView made = weight.tape().scratch(weight.shape()[1], weight.shape()[0]);
  kernels::transpose(made, weight.value());
  return made;
}

}  // namespace

Var linear(Var x, Var weight, std::optional<Var> bias) {
  require<ShapeError>(weight.shape().rank() == 2 && x.shape().last() == weight.shape()[1],
                      "linear: x {} * weight {} transposed: the last dimensions must match ({} vs {})",
                      x.shape(), weight.shape(), x.shape().last(), weight.shape().last());
  require<ShapeError>(!bias || bias->shape() == Shape{weight.shape()[0]},
                      "linear: bias {} for weight {}: it must be ({})", bias.value_or(weight).shape(),
                      weight.shape(), weight.shape()[0]);
  Tape& tape = x.tape();
  const Var y =
      tape.node("linear", x.shape().with_last(weight.shape()[0]), {x, weight, bias.value_or(weight)});
  kernels::linear_forward(y.value(), x.value(), weight.value(), transposed(weight),
                          bias ? bias->value() : MatrixView{});
  tape.on_backward(y, [x, weight, bias, y] {
    const auto wanted = [](Var v) { return v.needs_grad() ? v.grad_sum() : GradientView{}; };
    kernels::linear_backward(wanted(x), wanted(weight),
                             bias && bias->needs_grad() ? bias->grad() : MatrixView{}, y.grad(), x.value(),
                             weight.value());
  });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
