#include "thimble/kernels/windows.h"

#include <algorithm>

#include "thimble/core/error.h"
#include "thimble/ops/ops.h"

#include "ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var windows(Var x, std::int64_t window, bool causal, std::span<const std::int32_t> lengths) {
  require<ShapeError>(x.shape().rank() == 3, "windows: x {} must be (batch, time, channels)", x.shape());
  require<ShapeError>(window >= 1 && (causal || window % 2 == 1),
                      "windows: a window of {} positions: it must be positive and, unless causal, odd",
                      window);
  const std::int64_t batch = x.shape()[0], time = x.shape()[1];
  require<ShapeError>(lengths.empty() || static_cast<std::int64_t>(lengths.size()) == batch,
                      "windows: {} lengths for a batch of {}", lengths.size(), batch);
  const bool inside = std::ranges::all_of(lengths, [=](auto n) { return n >= 0 && n <= time; });
  require<ShapeError>(inside, "windows: every length must be 0 .. {}", time);
  const kernels::WindowSizes sizes{time, window, causal ? window - 1 : window / 2, x.tape().keep(lengths)};
  return record(
      "windows", {batch, time, x.shape()[2] * window}, {x},
      [=](Var y) { kernels::windows_forward(y.value(), x.value(), sizes); },
      [=](Var y) { kernels::windows_backward(x.grad_accumulator(), y.grad(), sizes); });
}

std::vector<GradcheckCase> gradcheck_windows() {
  static const std::vector<std::int32_t> lengths{3, 1};
  const auto window = [](std::int64_t size, bool causal, std::span<const std::int32_t> counted) {
    return [=](Tape&, Inputs in) { return windows(in[0], size, causal, counted); };
  };
  return {{"windows", "", {normal("x", {2, 5, 3})}, window(3, false, {})},
          {"windows", "causal, even, wider than the sequence", {normal("x", {2, 3, 5})}, window(4, true, {})},
          {"windows", "padding", {normal("x", {2, 3, 17})}, window(5, false, lengths)},
          {"windows", "one position", {normal("x", {1, 1, 5})}, window(1, false, {})}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
