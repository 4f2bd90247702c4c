#include "thimble/ops/ops.h"

#include "thimble/core/error.h"
#include "thimble/kernels/linear.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

// The inputs of a weight (O, ...): one matrix row in as many dimensions as it has.
std::int64_t inputs(Var weight) {
  const Shape& shape = weight.shape();
  return shape.rank() < 2 || shape[0] == 0 ? shape.last() : shape.elements() / shape[0];
}

// A view of the weight or its gradient as the matrix (O, I).
template <class View>
View matrix(View view, Var weight) {
  view.rows = weight.shape()[0];
  view.cols = view.stride = inputs(weight);
  return view;
}

ConstMatrixView transposed(Var weight) {
  if (!kernels::wants_transposed()) return {};
  if (const ConstMatrixView known = weight.transposed(); known.data != nullptr) return known;
  const MatrixView made = weight.tape().scratch(inputs(weight), weight.shape()[0]);
  kernels::transpose(made, matrix(weight.value(), weight));
  return made;
}

}  // namespace

Var linear(Var x, Var weight, std::optional<Var> bias) {
  require<ShapeError>(weight.shape().rank() >= 2 && x.shape().last() == inputs(weight),
                      "linear: x {} * weight {} transposed: the last dimensions must match ({} vs {})",
                      x.shape(), weight.shape(), x.shape().last(), inputs(weight));
  require<ShapeError>(!bias || bias->shape() == Shape{weight.shape()[0]},
                      "linear: bias {} for weight {}: it must be ({})", bias.value_or(weight).shape(),
                      weight.shape(), weight.shape()[0]);
  Tape& tape = x.tape();
  const Var y =
      tape.node("linear", x.shape().with_last(weight.shape()[0]), {x, weight, bias.value_or(weight)});
  kernels::linear_forward(y.value(), x.value(), matrix(weight.value(), weight), transposed(weight),
                          bias ? bias->value() : MatrixView{});
  tape.on_backward(y, [x, weight, bias, y] {
    const auto wanted = [](Var v) { return v.needs_grad() ? v.grad_sum() : GradientView{}; };
    kernels::linear_backward(wanted(x), matrix(wanted(weight), weight),
                             bias && bias->needs_grad() ? bias->grad() : MatrixView{}, y.grad(), x.value(),
                             matrix(weight.value(), weight));
  });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
