#include <algorithm>

#include "engine/kernels/elementwise.h"
#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Returns a view (B, C) of step t of x (B, T, C).
MatrixView step_of(MatrixView x, const Shape& shape, std::int64_t t) {
  return {x.data + t * shape[2], shape[0], shape[2], shape[1] * shape[2]};
}

void copy(MatrixView to, ConstMatrixView from) { kernels::accumulate({to, true}, from); }

}  // namespace

Var step(Var x, std::int64_t t) {
  const Shape shape = x.shape();
  require<ShapeError>(shape.rank() == 3, "step: x {} must be (batch, time, channels)", shape);
  require<ShapeError>(t >= 0 && t < shape[1], "step: step {} of x {}, which has {} steps", t, shape,
                      shape[1]);
  return record(
      "step", {shape[0], shape[2]}, {x}, [=](Var y) { copy(y.value(), step_of(x.value(), shape, t)); },
      [=](Var y) { kernels::accumulate(step_of(x.zeroed_grad_accumulator(), shape, t), y.grad()); });
}

Var stack(std::span<const Var> steps) {
  require<ShapeError>(!steps.empty() && steps[0].shape().rank() == 2,
                      "stack: {} steps: there must be at least one, and all must be (batch, channels)",
                      steps.size());
  const Shape first = steps[0].shape();
  const auto other = std::ranges::find_if(steps, [&](Var v) { return v.shape() != first; });
  require<ShapeError>(other == steps.end(), "stack: step {} is {}, not {} as the first",
                      other - steps.begin(), other == steps.end() ? first : other->shape(), first);
  const Shape shape{first[0], static_cast<std::int64_t>(steps.size()), first[1]};
  const std::span<const Var> kept = steps[0].tape().keep(steps);
  const auto each_step = [kept](const auto& f) {
    std::ranges::for_each(kept, [&, t = std::int64_t{0}](Var v) mutable { f(v, t++); });
  };
  return record(
      "stack", shape, kept,
      [=](Var y) {
        each_step([&](Var v, std::int64_t t) { copy(step_of(y.value(), shape, t), v.value()); });
      },
      [=](Var y) {
        each_step([&](Var v, std::int64_t t) {
          kernels::accumulate(v.grad_accumulator(), step_of(y.grad(), shape, t));
        });
      });
}

std::vector<GradcheckCase> gradcheck_steps() {
  const auto stacked = [](Tape&, Inputs in) { return stack(in); };
  return {
      {"step", "", {normal("x", {2, 3, 5})}, [](Tape&, Inputs in) { return step(in[0], 1); }},
      {"step", "the only one", {normal("x", {1, 1, 20})}, [](Tape&, Inputs in) { return step(in[0], 0); }},
      {"stack", "", {normal("first", {2, 5}), normal("second", {2, 5}), normal("third", {2, 5})}, stacked},
      {"stack", "one step", {normal("x", {1, 20})}, stacked},
      {"stack", "the same twice", {normal("x", {2, 3})}, [](Tape&, Inputs in) {
         const Var steps[] = {in[0], in[0]};
         return stack(steps);
       }}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
