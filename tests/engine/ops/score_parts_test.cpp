// The parts of scores: columns of a projection, head_linear, head_norm, rotary.
#include <cmath>
#include <limits>

#include "engine/ops/misuse.h"
#include "fixtures_compare.h"

using namespace thimble;
using tests::compare_gradient, tests::compare_value, tests::expect_refused, tests::of;

TEST_CASE("columns outside of a tensor are refused", "[ops]") {
  const auto columns = [](std::int64_t first, std::int64_t count) {
    return [=](Tape& t) { Columns(of(t, 2, 5), first, count); };
  };
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  expect_refused({{columns(3, 3), {"columns: ", "3 from column 3 of (2, 5)", "inside"}},
                  {columns(-1, 2), {"columns: ", "2 from column -1"}},
                  {columns(0, -1), {"columns: ", "-1 from column 0"}},
                  {columns(kHuge, kHuge), {"columns: ", "inside"}}});
  Tape t;
  CHECK(Columns(of(t, 2, 5), 3, 2).shape() == Shape{2, 2});
  CHECK(Columns(of(t, 2, 5), 5, 0).shape() == Shape{2, 0});
  CHECK(Columns(of(t, 2, 5)).shape() == Shape{2, 5});
}

TEST_CASE("head_linear names what does not fit", "[ops]") {
  const auto apply = [](const Shape& x, const Shape& weight, std::int64_t heads) {
    return [=](Tape& t) { head_linear(of(t, x), of(t, weight), heads); };
  };
  expect_refused({{apply({2, 6}, {2, 4, 5}, 2), {"head_linear: ", "x (2, 6)", "(2, 4, 5)", "heads D"}},
                  {apply({2, 6}, {3, 3, 5}, 2), {"head_linear: ", "(3, 3, 5), 2 heads"}},
                  {apply({2, 6}, {2, 3, 5, 1}, 2), {"head_linear: ", "(2, 3, 5, 1)", "(heads, D, E)"}},
                  {apply({2, 6}, {2, 3}, 2), {"head_linear: ", "weight (2, 3)", "(heads, D, E)"}},
                  {apply({2, 0}, {0, 3, 5}, 0), {"head_linear: ", "0 heads"}}});
}

TEST_CASE("head_norm names what does not fit", "[ops]") {
  const auto apply = [](const Shape& x, std::int64_t heads) {
    return [=](Tape& t) { head_norm(of(t, x), heads); };
  };
  expect_refused({{apply({2, 6}, 4), {"head_norm: ", "x (2, 6)", "heads (4) must divide", "(6)"}},
                  {apply({2, 6}, 0), {"head_norm: ", "heads (0)"}},
                  {apply({2, 0}, 1), {"head_norm: ", "(0)"}}});
}

TEST_CASE("the score cosine is sqrt(Dk) times the cosine, whatever the lengths", "[ops]") {
  Tape tape;
  const Var q = tape.constant(Tensor({1, 1, 4}, {3, 4, 0, -200})),
            k = tape.constant(Tensor({1, 2, 2}, {40, -30, 0, 5}));
  const Var v = tape.constant(Tensor({1, 2, 1}, {1, 0}));
  AttentionOptions options;
  options.heads = 2;
  const Var y = scored_attention(Score::cosine, q, k, v, std::nullopt, options);
  // Head 0: cosines 0 and 0.8. Head 1: cosines 0.6 and -1. Softmax of two is a logistic function.
  const auto weight = [](double difference) { return 1 / (1 + std::exp(-std::sqrt(2.0) * difference)); };
  CHECK_THAT(y.value().data[0], WithinAbs(weight(-0.8), 1e-5));
  CHECK_THAT(y.value().data[1], WithinAbs(weight(1.6), 1e-5));
}

TEST_CASE("rotary names what does not fit", "[ops]") {
  const auto apply = [](const Shape& x, std::int64_t first, std::int64_t count, std::int64_t d_key,
                        std::int64_t position = 0) {
    return [=](Tape& t) { rotary(of(t, x), first, count, d_key, position); };
  };
  expect_refused({{apply({6, 8}, 0, 8, 4), {"rotary: ", "(6, 8)", "(batch, time, channels)"}},
                  {apply({2, 3, 9}, 0, 9, 3), {"rotary: ", "d_key (3)", "even"}},
                  {apply({2, 3, 8}, 0, 8, 0), {"rotary: ", "d_key (0)"}},
                  {apply({2, 3, 8}, 0, 6, 4), {"rotary: ", "d_key (4)", "divide", "(6)"}},
                  {apply({2, 3, 8}, 4, 8, 4), {"columns: ", "8 from column 4 of (2, 3, 8)"}},
                  {apply({2, 3, 8}, 0, 8, 4, -1), {"rotary: ", "-1", "at least 0"}}});
}

TEST_CASE("a gradient of some columns leaves zeros in the others, or what is there", "[ops]") {
  Tape tape;
  tape.constant(Tensor({1000}, std::vector<Real>(1000, std::numeric_limits<Real>::quiet_NaN())));
  tape.rewind();  // what is not written from here on is NaN
  const Var x = tape.variable(Tensor({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  const Var weight = tape.constant(Tensor({2, 1, 1}, {10, 100}));
  const Var part = head_linear({x, 1, 2}, weight, 2);
  compare_value("part", part, {20, 300, 60, 700});
  tape.backward(part, Tensor({2, 2}, {1, 1, 2, 2}).matrix());
  compare_gradient("x", x, {0, 10, 100, 0, 0, 20, 200, 0});
  tape.backward(part, Tensor({2, 2}, {1, 1, 1, 1}).matrix());
  compare_gradient("x after a second call", x, {0, 20, 200, 0, 0, 30, 300, 0});
}
