// Steps of a sequence, their stack, columns side by side, and the GRU cell: values, and what does not fit.
#include "engine/ops/misuse.h"
#include "fixtures_compare.h"

using namespace thimble;
using tests::compare_gradient, tests::compare_value, tests::expect_refused, tests::of;

TEST_CASE("step takes one position, and stack puts positions together", "[ops]") {
  Tape tape;
  const Var x = tape.variable(Tensor({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  const Var middle = step(x, 1);
  compare_value("step", middle, {3, 4, 9, 10});
  const Var steps[] = {step(x, 2), middle, step(x, 0)};
  const Var reversed = stack(steps);
  CHECK(reversed.shape() == Shape{2, 3, 2});
  compare_value("stack", reversed, {5, 6, 3, 4, 1, 2, 11, 12, 9, 10, 7, 8});
  const Tensor seed({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  tape.backward(reversed, seed.matrix());
  compare_gradient("x", x, {5, 6, 3, 4, 1, 2, 11, 12, 9, 10, 7, 8});
}

TEST_CASE("concat puts columns side by side", "[ops]") {
  Tape tape;
  const Var a = tape.variable(Tensor({2, 2}, {1, 2, 3, 4})), b = tape.variable(Tensor({2, 1}, {5, 6}));
  const Var y = concat(a, b);
  compare_value("concat", y, {1, 2, 5, 3, 4, 6});
  const Tensor seed({2, 3}, {1, 2, 3, 4, 5, 6});
  tape.backward(y, seed.matrix());
  compare_gradient("a", a, {1, 2, 4, 5});
  compare_gradient("b", b, {3, 6});
}

TEST_CASE("steps without a gradient are left alone", "[ops]") {
  Tape tape;
  const Var a = tape.constant(Tensor({1, 2}, {1, 2})), b = tape.variable(Tensor({1, 2}, {3, 4}));
  CHECK_FALSE(concat(a, a).needs_grad());
  const Var steps[] = {a, b};
  const Tensor seed({1, 2, 2}, {1, 2, 3, 4});
  tape.backward(stack(steps), seed.matrix());
  tape.backward(concat(b, a), ConstMatrixView{seed.data(), 1, 4, 4});
  compare_gradient("b", b, {3 + 1, 4 + 2});
}

TEST_CASE("steps and their stack name what does not fit", "[ops]") {
  const auto take = [](const Shape& x, std::int64_t t) { return [=](Tape& tape) { step(of(tape, x), t); }; };
  const auto put = [](const Shape& first, const Shape& second) {
    return [=](Tape& tape) {
      const Var steps[] = {of(tape, first), of(tape, second)};
      stack(steps);
    };
  };
  const auto join = [](const Shape& a, const Shape& b) {
    return [=](Tape& tape) { concat(of(tape, a), of(tape, b)); };
  };
  expect_refused({
      {take({2, 3}, 0), {"step: ", "(2, 3)", "(batch, time, channels)"}},
      {take({2, 3, 4}, 3), {"step: step 3 of x (2, 3, 4), which has 3"}},
      {take({2, 3, 4}, -1), {"step: step -1"}},
      {[](Tape&) { stack({}); }, {"stack: 0 steps", "one"}},
      {put({2, 3, 4}, {2, 3, 4}), {"stack: ", "(batch, channels)"}},
      {put({2, 3}, {2, 4}), {"stack: step 1 is (2, 4), not (2, 3)"}},
      {join({2, 3}, {3, 3}), {"concat: a (2, 3), b (3, 3)", "all dimensions but the last"}},
      {join({2, 3}, {2, 3, 1}), {"concat: ", "(2, 3, 1)"}},
      {join({}, {}), {"concat: a (), b ()"}},
  });
}

TEST_CASE("gru_cell names what does not fit", "[ops]") {
  static const std::vector<std::int32_t> three{1, 1, 1};
  const auto cell = [](const Shape& a, const Shape& b, const Shape& h,
                       std::span<const std::int32_t> lengths) {
    return [=](Tape& tape) { gru_cell(of(tape, a), of(tape, b), of(tape, h), lengths); };
  };
  expect_refused({
      {cell({2, 9}, {2, 9}, {2, 4}, {}), {"gru_cell: gates (2, 9) and (2, 9), state (2, 4)", "3 channels"}},
      {cell({2, 9}, {2, 8}, {2, 3}, {}), {"gru_cell: ", "(2, 8)"}},
      {cell({2, 8}, {2, 9}, {2, 3}, {}), {"gru_cell: ", "(2, 8)"}},
      {cell({1, 2, 9}, {1, 2, 9}, {1, 2, 3}, {}), {"gru_cell: ", "(1, 2, 3)", "(batch, channels)"}},
      {cell({2, 9}, {2, 9}, {2, 3}, three), {"gru_cell: 3 lengths for a batch of 2"}},
  });
}
