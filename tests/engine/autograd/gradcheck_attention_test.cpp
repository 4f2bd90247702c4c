// Tests of the gradient check: attention with typical mistakes in its backward pass.
#include "thimble/engine/gradcheck.h"

#ifdef THIMBLE_DOUBLE

#include <cmath>

#include "engine/autograd/planted.h"
#include "engine/kernels/attention/attention_steps.h"

using namespace thimble;
using namespace thimble::planted;

namespace {

using Inputs = std::span<const Var>;

enum class Slip { nothing, no_mask, no_scale, no_row_sum };

// Causal attention of one head, q, k and v (4, 3).
Var attention_with(Tape& tape, Inputs in, Slip slip) {
  constexpr std::int64_t kTime = 4, kDepth = 3;
  const Var q = in[0], k = in[1], v = in[2];
  const Real factor = 1 / std::sqrt(Real(kDepth));
  const MatrixView masked = tape.scratch(kTime, kTime), open = tape.scratch(kTime, kTime);
  const MatrixView work = tape.scratch(kTime, kDepth), p = slip == Slip::no_mask ? open : masked;
  const Real scale = slip == Slip::no_scale ? 1 : factor;
  return record(
      "planted", {kTime, kDepth}, {q, k, v},
      [&](Var y) {
        const AttentionSizes sizes{.batch = 1, .queries = kTime, .keys = kTime};
        kernels::attention_weights_forward(masked, q.value(), k.value(), work.data, sizes,
                                           {.causal = true, .lengths = {}}, factor);
        kernels::attention_weights_forward(open, q.value(), k.value(), work.data, sizes, {}, factor);
        kernels::attention_apply_forward(y.value(), masked, v.value(), sizes);
      },
      [=](Var y) {
        for (std::int64_t i = 0; i < kTime; ++i) {
          Real dp[kTime] = {}, sum = 0;
          for (std::int64_t j = 0; j < kTime; ++j) {
            for (std::int64_t c = 0; c < kDepth; ++c) {
              dp[j] += at(y.grad(), i, c) * at(v.value(), j, c);
              at(v.grad(), j, c) += at(p, i, j) * at(y.grad(), i, c);
            }
            sum += slip == Slip::no_row_sum ? 0 : dp[j] * at(p, i, j);
          }
          for (std::int64_t j = 0; j < kTime; ++j) {
            const Real ds = scale * at(p, i, j) * (dp[j] - sum);
            for (std::int64_t c = 0; c < kDepth; ++c) {
              at(q.grad(), i, c) += ds * at(k.value(), j, c);
              at(k.grad(), j, c) += ds * at(q.value(), i, c);
            }
          }
        }
      });
}

}  // namespace

TEST_CASE("mistakes in attention are caught", "[autograd]") {
  expect_caught("causal mask missing in attention", of({"q", "k", "v"}, {4, 3}), {"q", "k", "v"},
                [](Tape& tape, Inputs in, bool right) {
                  return attention_with(tape, in, right ? Slip::nothing : Slip::no_mask);
                });
  expect_caught("scale missing in attention", of({"q", "k", "v"}, {4, 3}), {"q", "k"},
                [](Tape& tape, Inputs in, bool right) {
                  return attention_with(tape, in, right ? Slip::nothing : Slip::no_scale);
                });
  expect_caught("row sum missing in attention", of({"q", "k", "v"}, {4, 3}), {"q", "k"},
                [](Tape& tape, Inputs in, bool right) {
                  return attention_with(tape, in, right ? Slip::nothing : Slip::no_row_sum);
                });
}

#endif  // THIMBLE_DOUBLE
