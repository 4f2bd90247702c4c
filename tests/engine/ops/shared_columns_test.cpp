// Attention whose queries, keys and values are columns of one tensor.
#include <cmath>
#include <vector>

#include "catch.h"
#include "thimble/engine/ops.h"

using namespace thimble;

namespace {

constexpr std::int64_t kTime = 3, kQueries = 4;

// Checks attention inside one tensor against attention whose queries, keys and values are three equal tensors.
void check_columns(std::int64_t width, std::int64_t kv_heads, std::int64_t q, std::int64_t k,
                   std::int64_t v) {
  const std::int64_t keys = kQueries / 2 * kv_heads;
  CAPTURE(width, kv_heads, q, k, v);
  Tensor values({1, kTime, width});
  for (std::size_t i = 0; i < values.values().size(); ++i)
    values.values()[i] = static_cast<Real>(std::sin(static_cast<double>(i)));
  Tape tape;
  const Var shared = tape.variable(values), only_q = tape.variable(values), only_k = tape.variable(values),
            only_v = tape.variable(values);
  const auto loss = [&](Var a, Var b, Var c) {
    AttentionOptions options;
    options.heads = 2;
    options.kv_heads = kv_heads;
    const Var out = attention({a, q, kQueries}, {b, k, keys}, {c, v, keys}, options);
    return cross_entropy(out, std::vector<std::int32_t>{0, 1, 2});
  };
  tape.backward(add(loss(shared, shared, shared), loss(only_q, only_k, only_v)));
  for (std::int64_t i = 0; i < kTime * width; ++i) {
    CAPTURE(i);
    const Real sum = only_q.grad().data[i] + only_k.grad().data[i] + only_v.grad().data[i];
    CHECK_THAT(shared.grad().data[i], WithinAbs(double(sum), 1e-6));
  }
}

}  // namespace

TEST_CASE("columns of one tensor get the gradients of queries, keys and values, wherever they lie",
          "[ops][attention]") {
  for (const std::int64_t kv_heads : {2, 1}) {
    const std::int64_t keys = kQueries / 2 * kv_heads;
    for (const std::int64_t width : {kQueries + keys, kQueries + 2 * keys, std::int64_t{14}}) {
      for (std::int64_t q = 0; q + kQueries <= width; q += 2) {
        for (std::int64_t k = 0; k + keys <= width; k += 2) {
          for (std::int64_t v = 0; v + keys <= width; v += 2) check_columns(width, kv_heads, q, k, v);
        }
      }
    }
  }
}
