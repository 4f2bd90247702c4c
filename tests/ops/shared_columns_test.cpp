// Attention whose queries, keys and values are columns of one tensor.
#include <cmath>
#include <vector>

#include "catch.h"
#include "thimble/ops/ops.h"

using namespace thimble;

TEST_CASE("columns that overlap in part get the gradients of queries and of keys", "[ops][attention]") {
  Tensor values({1, 3, 12});
  for (std::size_t i = 0; i < 36; ++i)
    values.values()[i] = static_cast<Real>(std::sin(static_cast<double>(i)));
  Tape tape;
  const Var shared = tape.variable(values), q = tape.variable(values), k = tape.variable(values),
            v = tape.variable(values);
  const auto loss = [](Var a, Var b, Var c) {
    const Var out = attention({a, 0, 4}, {b, 2, 4}, {c, 8, 4}, {});
    return cross_entropy(out, std::vector<std::int32_t>{0, 1, 2});
  };
  tape.backward(add(loss(shared, shared, shared), loss(q, k, v)));
  for (std::int64_t i = 0; i < 36; ++i) {
    CAPTURE(i);
    const Real sum = q.grad().data[i] + k.grad().data[i] + v.grad().data[i];
    CHECK_THAT(shared.grad().data[i], WithinAbs(double(sum), 1e-6));
  }
}
