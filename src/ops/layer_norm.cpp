#include "thimble/ops/ops.h"

#include "thimble/core/error.h"
#include "thimble/kernels/layer_norm.h"

namespace thimble::inline THIMBLE_PRECISION {

Var layer_norm(Var x, Var weight, Var bias, Real epsilon) {
  const Shape channels{x.shape().last()};
  require<ShapeError>(weight.shape() == channels && bias.shape() == channels,
                      "layer_norm: x {}, weight {}, bias {}: weight and bias must be {}", x.shape(),
                      weight.shape(), bias.shape(), channels);
  Tape& tape = x.tape();
  const Var y = tape.node("layer_norm", x.shape(), {x, weight, bias});
  const MatrixView statistics = tape.scratch(x.shape().rows(), 2);
  kernels::layer_norm_forward(y.value(), statistics, x.value(), weight.value(), bias.value(), epsilon);
  tape.on_backward(y, [x, weight, bias, y, statistics] {
    const auto wanted = [](Var v) { return v.needs_grad() ? v.grad() : MatrixView{}; };
    kernels::layer_norm_backward(x.needs_grad() ? x.grad_sum() : GradientView{}, wanted(weight), wanted(bias),
                                 y.grad(), x.value(), weight.value(), statistics);
  });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
