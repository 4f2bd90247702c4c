#include "engine/kernels/pool.h"

#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

#include "engine/ops/check_lengths.h"
#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

Var pool(const char* name, Var x, kernels::Pool kind, std::span<const std::int32_t> lengths) {
  require<ShapeError>(x.shape().rank() == 3 && x.shape()[1] > 0, "{}: x {} must be (batch, time, channels)",
                      name, x.shape());
  const std::int64_t batch = x.shape()[0], time = x.shape()[1];
  check_lengths(name, lengths, batch, 1, time);
  const MatrixView weights = x.tape().scratch(batch, time);
  return record(
      name, {batch, x.shape()[2]}, {x},
      [=](Var y) {
        kernels::pool_weights(weights, kind, lengths);
        kernels::pool_forward(y.value(), x.value(), weights);
      },
      [=](Var y) { kernels::pool_backward(x.grad_accumulator(), y.grad(), weights); });
}

}  // namespace

Var mean_pool(Var x, std::span<const std::int32_t> lengths) {
  return pool("mean_pool", x, kernels::Pool::mean, lengths);
}

Var first_pool(Var x) { return pool("first_pool", x, kernels::Pool::first, {}); }

Var last_pool(Var x, std::span<const std::int32_t> lengths) {
  return pool("last_pool", x, kernels::Pool::last, lengths);
}

std::vector<GradcheckCase> gradcheck_pool() {
  static const std::vector<std::int32_t> lengths{3, 1};
  const std::vector x{normal("x", {2, 3, 5})};
  return {{"mean_pool", "", x, [](Tape&, Inputs in) { return mean_pool(in[0]); }},
          {"mean_pool", "padding", x, [](Tape&, Inputs in) { return mean_pool(in[0], lengths); }},
          {"first_pool", "", x, [](Tape&, Inputs in) { return first_pool(in[0]); }},
          {"last_pool", "", x, [](Tape&, Inputs in) { return last_pool(in[0]); }},
          {"last_pool", "padding", x, [](Tape&, Inputs in) { return last_pool(in[0], lengths); }}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
