// Tests of the gradient check: wrong backward passes of element-wise ops.
#include "thimble/engine/gradcheck.h"

#ifdef THIMBLE_DOUBLE

#include <cmath>

#include "engine/autograd/planted.h"
#include "thimble/engine/ops.h"

using namespace thimble;
using namespace thimble::planted;
using enum GradcheckVerdict;

TEST_CASE("a wrong slope is caught", "[autograd]") {
  expect_caught(
      "wrong sign", {input("x", {2, 3})}, {"x"}, [](Tape& tape, std::span<const Var> in, bool right) {
        return elementwise(tape, in[0], squared, [right](Real v) { return right ? 2 * v : -2 * v; });
      });
  expect_caught(
      "missing scale", {input("x", {2, 3})}, {"x"}, [](Tape& tape, std::span<const Var> in, bool right) {
        return elementwise(
            tape, in[0], [](Real v) { return 3 * v; }, [right](Real) { return Real(right ? 3 : 1); });
      });
  expect_caught("tanh's slope from its input", {input("x", {2, 3})}, {"x"},
                [](Tape& tape, std::span<const Var> in, bool right) {
                  return elementwise(
                      tape, in[0], [](Real v) { return std::tanh(v); },
                      [right](Real v) { return 1 - squared(right ? std::tanh(v) : v); });
                });
  expect_caught("a slope that is off by 1e-5", {input("x", {2, 3})}, {"x"},
                [](Tape& tape, std::span<const Var> in, bool right) {
                  return elementwise(tape, in[0], squared,
                                     [right](Real v) { return 2 * v * (right ? 1 : 1 + 1e-5); });
                });
  expect_caught("ReLU that lets negative gradients through", {input("x", {2, 8})}, {"x"},
                [](Tape& tape, std::span<const Var> in, bool right) {
                  return elementwise(
                      tape, in[0], [](Real v) { return std::max(v, Real(0)); },
                      [right](Real v) { return Real(!right || v > 0 ? 1 : 0); });
                });
}

TEST_CASE("a wrong element is caught", "[autograd]") {
  expect_caught("last column forgotten", {input("x", {3, 5})}, {"x"},
                [](Tape&, std::span<const Var> in, bool right) {
                  const Var x = in[0];
                  return doubled(x, [=](Var y) {
                    for (std::int64_t i = 0; i < 15; ++i)
                      x.grad().data[i] += right || i % 5 < 4 ? 2 * y.grad().data[i] : 0;
                  });
                });
  expect_caught("gradient of a reversal not reversed", {input("x", {6})}, {"x"},
                [](Tape&, std::span<const Var> in, bool right) {
                  const Var x = in[0];
                  return record(
                      "planted", {6}, {x},
                      [&](Var y) {
                        for (std::int64_t i = 0; i < 6; ++i) y.value().data[i] = x.value().data[5 - i];
                      },
                      [=](Var y) {
                        for (std::int64_t i = 0; i < 6; ++i)
                          x.grad().data[i] += y.grad().data[right ? 5 - i : i];
                      });
                });
  expect_caught("one element of 40 wrong", {input("x", {40})}, {"x"},
                [](Tape&, std::span<const Var> in, bool right) {
                  const Var x = in[0];
                  return doubled(x, [=](Var y) {
                    for (std::int64_t i = 0; i < 40; ++i)
                      x.grad().data[i] += (right || i != 17 ? 2 : Real(2.001)) * y.grad().data[i];
                  });
                });
}

TEST_CASE("a gradient that is not added is caught", "[autograd]") {
  expect_caught("= for +=", {input("x", {2, 3})}, {"x"}, [](Tape&, std::span<const Var> in, bool right) {
    const Var x = in[0];
    return doubled(x, [=](Var y) {
      for (std::int64_t i = 0; i < 6; ++i) {
        Real& dx = x.grad().data[i];
        dx = (right ? dx : 0) + 2 * y.grad().data[i];
      }
    });
  });
  expect_caught("= for +=, hidden inside a larger function", {input("x", {2, 3})}, {"x"},
                [](Tape&, std::span<const Var> in, bool right) {
                  const Var x = scale(in[0], 3);
                  return add(doubled(x,
                                     [=](Var y) {
                                       for (std::int64_t i = 0; i < 6; ++i) {
                                         Real& dx = x.grad().data[i];
                                         dx = (right ? dx : 0) + 2 * y.grad().data[i];
                                       }
                                     }),
                             x);  // x's other use has left its gradient by then
                });
  expect_caught("gradient to one of two uses dropped", {input("x", {2, 3})}, {"x"},
                [](Tape&, std::span<const Var> in, bool right) {
                  const Var a = in[0], b = in[0];
                  return record(
                      "planted", a.shape(), {a, b},
                      [&](Var y) {
                        for (std::int64_t i = 0; i < 6; ++i)
                          y.value().data[i] = a.value().data[i] * b.value().data[i];
                      },
                      [=](Var y) {
                        for (std::int64_t i = 0; i < 6; ++i) {
                          a.grad().data[i] += b.value().data[i] * y.grad().data[i];
                          if (right) b.grad().data[i] += a.value().data[i] * y.grad().data[i];
                        }
                      });
                });
  expect_caught("gradient of the second input sent to the first", {input("a", {2, 3}), input("bb", {2, 3})},
                {"a", "bb"}, [](Tape&, std::span<const Var> in, bool right) {
                  const Var a = in[0], b = in[1];
                  return record(
                      "planted", a.shape(), {a, b},
                      [&](Var y) {
                        for (std::int64_t i = 0; i < 6; ++i)
                          y.value().data[i] = a.value().data[i] - 2 * b.value().data[i];
                      },
                      [=](Var y) {
                        for (std::int64_t i = 0; i < 6; ++i) {
                          (right ? a : b).grad().data[i] += y.grad().data[i];
                          (right ? b : a).grad().data[i] -= 2 * y.grad().data[i];
                        }
                      });
                });
}

TEST_CASE("an op that changes its input is caught", "[autograd]") {
  const auto results = expect_caught("ReLU in place", {input("x", {2, 4})}, {"x"},
                                     [](Tape& tape, std::span<const Var> in, bool right) {
                                       const Var y = elementwise(
                                           tape, in[0], [](Real v) { return std::max(v, Real(0)); },
                                           [](Real v) { return Real(v > 0 ? 1 : 0); });
                                       if (!right) std::copy_n(y.value().data, 8, in[0].value().data);
                                       return y;
                                     });
  CHECK(results.front().reason == "the op changed its input");
}

TEST_CASE("a sum would not see softmax's gradient, random weights do", "[autograd]") {
  const auto no_gradient = [](Tape&, Var x) {
    return record(
        "planted", x.shape(), {x},
        [&](Var y) { std::copy_n(softmax(x).value().data, x.value().elements(), y.value().data); },
        [](Var) {});
  };
  CHECK(check_one(input("x", {2, 5}), no_gradient).verdict == wrong);
}

TEST_CASE("large and small values of x do not disturb", "[autograd]") {
  const auto cube = [](Tape& tape, Var x) {
    return elementwise(
        tape, x, [](Real v) { return v * v * v; }, [](Real v) { return 3 * v * v; });
  };
  CHECK(check_one({"x", Tensor({6}, {1e4, -300, 20, 1, 1e-2, -1e-4})}, cube).verdict == ok);
  CHECK(check_one({"x", Tensor({1}, {1e8})}, cube).verdict == ok);
}

TEST_CASE("a result says which element is worst, and by how much", "[autograd]") {
  const GradcheckResult result = check_one(input("x", {2, 3}), [](Tape& tape, Var x) {
    return elementwise(tape, x, squared,
                       [wrong = x.value().data[5]](Real v) { return v == wrong ? 3 * v : 2 * v; });
  });
  CHECK(result.op == "planted");
  CHECK(result.input == "x");
  CHECK(result.index == "[1, 2]");
  CHECK_THAT(result.worst_error, WithinRel(1.0 / 3, 1e-6));
  CHECK_THAT(result.analytic / result.numeric, WithinRel(1.5, 1e-6));
  CHECK_THAT(result.reason, StartsWith("the gradient is ") && ContainsSubstring(", whose error is at most "));
  CHECK(result.error < 1e-9);
}

#endif  // THIMBLE_DOUBLE
