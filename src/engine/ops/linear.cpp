#include "thimble/engine/ops.h"

#include "engine/kernels/products/linear.h"
#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Returns the number of inputs I of a weight (O, I), whose I inputs may be several dimensions.
std::int64_t inputs(Var weight) {
  const Shape& shape = weight.shape();
  return shape.rank() < 2 || shape[0] == 0 ? shape.last() : shape.elements() / shape[0];
}

// Returns a view of the weight or its gradient as the matrix (O, I).
template <class View>
View matrix(View view, Var weight) {
  view.rows = weight.shape()[0];
  view.cols = view.stride = inputs(weight);
  return view;
}

// Records y = x W^T + bias of the outputs first .. first + count - 1.
Var record_linear(const char* name, const Columns& x, Var weight, std::optional<Var> bias, std::int64_t first,
                  std::int64_t count) {
  const auto rows = [=](auto view) { return matrix(view, weight).row_block(first, count); };
  const auto columns = [=](auto view) {
    return view.data != nullptr ? view.column_block(first, count) : view;
  };
  const PackedWeight packed = weight.packed();
  const double flops = 2.0 * static_cast<double>(x.source.shape().rows()) * inputs(weight) * count;
  return record(
      name, x.shape().with_last(count), {x.source, weight, bias.value_or(weight)},
      [=](Var y) {
        kernels::linear_forward(y.value(), x.value(), rows(weight.value()), columns(packed.forward),
                                bias ? columns(bias->value()) : MatrixView{});
      },
      [=](Var y) {
        const bool whole = count == weight.shape()[0];
        kernels::linear_backward(x.grad_accumulator(),
                                 rows(whole ? weight.grad_accumulator() : weight.zeroed_grad_accumulator()),
                                 bias ? columns(bias->zeroed_grad_accumulator()) : GradientView{}, y.grad(),
                                 x.value(), rows(weight.value()), packed.backward.row_block(first, count));
      },
      {.forward = flops, .backward = 2 * flops});
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
  return record_linear("linear", x, weight, bias, 0, weight.shape()[0]);
}

Var linear_part(Columns x, Var weight, std::optional<Var> bias, std::int64_t first, std::int64_t count) {
  check_linear("linear_part", x, weight, bias);
  require<ShapeError>(first >= 0 && count > 0 && first + count <= weight.shape()[0],
                      "linear_part: outputs {} .. {} of weight {}: there are {}", first, first + count - 1,
                      weight.shape(), weight.shape()[0]);
  return record_linear("linear_part", x, weight, bias, first, count);
}

std::vector<GradcheckCase> gradcheck_linear() {
  const auto biased = [](Tape&, Inputs in) { return linear(in[0], in[1], in[2]); };
  const auto part = [](Tape&, Inputs in) { return linear_part(in[0], in[1], in[2], 2, 3); };
  return {
      {"linear", "", {normal("x", {2, 3, 5}), normal("weight", {7, 5}), normal("bias", {7})}, biased},
      {"linear", "19 rows", {normal("x", {19, 3}), normal("weight", {40, 3}), normal("bias", {40})}, biased},
      {"linear", "one output", {normal("x", {3, 5}), normal("weight", {1, 5}), normal("bias", {1})}, biased},
      {"linear",
       "inputs in two dimensions",
       {normal("x", {2, 3, 10}), normal("weight", {7, 5, 2}), normal("bias", {7})},
       biased},
      {"linear",
       "no bias",
       {normal("x", {3, 5}), normal("weight", {7, 5})},
       [](Tape&, Inputs in) { return linear(in[0], in[1]); }},
      {"linear",
       "some columns",
       {normal("x", {3, 5}), normal("weight", {7, 2})},
       [](Tape&, Inputs in) {
         return linear({in[0], 2, 2}, in[1]);
       }},
      {"linear_part", "", {normal("x", {2, 3, 5}), normal("weight", {7, 5}), normal("bias", {7})}, part},
      {"linear_part",
       "no bias",
       {normal("x", {3, 5}), normal("weight", {7, 5})},
       [](Tape&, Inputs in) { return linear_part(in[0], in[1], std::nullopt, 2, 3); }},
      {"linear_part",
       "both halves",
       {normal("x", {4, 5}), normal("weight", {6, 5}), normal("bias", {6})},
       [](Tape&, Inputs in) {
         return add(linear_part(in[0], in[1], in[2], 0, 3), linear_part(in[0], in[1], in[2], 3, 3));
       }}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
