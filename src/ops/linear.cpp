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

// The outputs from `first` on, as many as y has columns.
void record_linear(Var y, const Columns& x, Var weight, std::optional<Var> bias, std::int64_t first) {
  const std::int64_t count = y.shape().last();
  const auto rows = [=](auto view) { return matrix(view, weight).row_block(first, count); };
  const auto columns = [=](auto view) {
    return view.data != nullptr ? view.column_block(first, count) : view;
  };
  kernels::linear_forward(y.value(), x.value(), rows(weight.value()), columns(transposed(weight)),
                          bias ? columns(bias->value()) : MatrixView{});
  y.tape().on_backward(y, [=] {
    GradientView dweight;
    if (weight.needs_grad())
      dweight = count == weight.shape()[0] ? rows(weight.grad_sum()) : GradientView(rows(weight.grad()));
    kernels::linear_backward(x.needs_grad() ? x.grad_sum() : GradientView{}, dweight,
                             bias && bias->needs_grad() ? columns(bias->grad()) : MatrixView{}, y.grad(),
                             x.value(), rows(weight.value()));
  });
}

void check_linear(const char* name, const Columns& x, Var weight, std::optional<Var> bias) {
  require<ShapeError>(weight.shape().rank() >= 2 && x.count == inputs(weight),
                      "{}: x {} * weight {} transposed: the last dimensions must match ({} vs {})", name,
                      x.shape(), weight.shape(), x.count, inputs(weight));
  require<ShapeError>(!bias || bias->shape() == Shape{weight.shape()[0]},
                      "{}: bias {} for weight {}: it must be ({})", name, bias.value_or(weight).shape(),
                      weight.shape(), weight.shape()[0]);
}

}  // namespace

Var linear(Columns x, Var weight, std::optional<Var> bias) {
  check_linear("linear", x, weight, bias);
  const Var y = x.source.tape().node("linear", x.shape().with_last(weight.shape()[0]),
                                     {x.source, weight, bias.value_or(weight)});
  record_linear(y, x, weight, bias, 0);
  return y;
}

Var linear_part(Columns x, Var weight, Var bias, std::int64_t first, std::int64_t count) {
  check_linear("linear_part", x, weight, bias);
  require<ShapeError>(first >= 0 && count > 0 && first + count <= weight.shape()[0],
                      "linear_part: outputs {} .. {} of weight {}: there are {}", first, first + count - 1,
                      weight.shape(), weight.shape()[0]);
  const Var y = x.source.tape().node("linear_part", x.shape().with_last(count), {x.source, weight, bias});
  record_linear(y, x, weight, bias, first);
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
