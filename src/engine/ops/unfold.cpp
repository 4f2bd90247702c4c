#include "engine/kernels/unfold.h"

#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

#include "engine/ops/check_lengths.h"
#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var unfold(Var x, std::int64_t window, bool causal, std::span<const std::int32_t> lengths) {
  require<ShapeError>(x.shape().rank() == 3, "unfold: x {} must be (batch, time, channels)", x.shape());
  require<ShapeError>(window >= 1 && (causal || window % 2 == 1),
                      "unfold: the window ({} positions) must be positive and, unless causal, odd", window);
  const std::int64_t batch = x.shape()[0], time = x.shape()[1];
  check_lengths("unfold", lengths, batch, 0, time);
  const kernels::UnfoldSizes sizes{time, window, causal ? window - 1 : window / 2, x.tape().keep(lengths)};
  return record(
      "unfold", {batch, time, x.shape()[2] * window}, {x},
      [=](Var y) { kernels::unfold_forward(y.value(), x.value(), sizes); },
      [=](Var y) { kernels::unfold_backward(x.grad_accumulator(), y.grad(), sizes); });
}

std::vector<GradcheckCase> gradcheck_unfold() {
  static const std::vector<std::int32_t> lengths{3, 1};
  const auto window = [](std::int64_t size, bool causal, std::span<const std::int32_t> counted) {
    return [=](Tape&, Inputs in) { return unfold(in[0], size, causal, counted); };
  };
  return {{"unfold", "", {normal("x", {2, 5, 3})}, window(3, false, {})},
          {"unfold", "causal, even, wider than the sequence", {normal("x", {2, 3, 5})}, window(4, true, {})},
          {"unfold", "padding", {normal("x", {2, 3, 17})}, window(5, false, lengths)},
          {"unfold", "one position", {normal("x", {1, 1, 5})}, window(1, false, {})}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
