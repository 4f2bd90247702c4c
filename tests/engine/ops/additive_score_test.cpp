// The additive score as an op: shapes that do not fit, columns of one projection, memory.
#include "engine/ops/misuse.h"
#include "fixtures_compare.h"

using namespace thimble;
using tests::expect_refused, tests::of;

namespace {

Tensor normal_scores(const Shape& shape, std::uint32_t which) {
  const Random random(5, Stream::gradcheck);
  Tensor x(shape);
  std::uint64_t i = 0;
  for (Real& value : x.values()) value = static_cast<Real>(random.normal(i++, which));
  return x;
}

// Returns the bytes of a tape after forward and backward of scores with this many columns of a head.
double tape_bytes(std::int64_t time, std::int64_t d_key) {
  constexpr std::int64_t kHeads = 2;
  Tape tape;
  const Var x = tape.variable(Tensor({2, time, 2 * kHeads * d_key}));
  const Var weight = tape.variable(Tensor({kHeads, d_key}));
  const Columns q(x, 0, kHeads * d_key), k(x, kHeads * d_key, kHeads * d_key);
  const Var scores = additive_score(q, k, weight, kHeads, kHeads);
  tape.backward(scores, Tensor({2 * kHeads * time, time}).matrix());
  return static_cast<double>(tape.bytes());
}

}  // namespace

TEST_CASE("additive_score names what does not fit", "[ops]") {
  const auto score = [](const Shape& q, const Shape& k, const Shape& weight, std::int64_t heads,
                        std::int64_t kv_heads) {
    return [=](Tape& t) { additive_score(of(t, q), of(t, k), of(t, weight), heads, kv_heads); };
  };
  // Each breaks one rule.
  const Shape x{2, 3, 8}, wide{2, 3, 8, 8};
  expect_refused(
      {{score(wide, x, {2, 4}, 2, 2), {"additive_score: ", "q (2, 3, 8, 8)", "time, channels"}},
       {score(x, wide, {2, 4}, 2, 2), {"additive_score: ", "k (2, 3, 8, 8)", "time, channels"}},
       {score({6, 8}, {6, 8}, {2, 4}, 2, 2), {"additive_score: ", "q (6, 8)", "time, channels"}},
       {score(x, {1, 3, 8}, {2, 4}, 2, 2), {"additive_score: ", "k (1, 3, 8)", "one batch"}},
       {score({2, 3, 0}, {2, 3, 4}, {0, 4}, 0, 1), {"additive_score: ", "heads (0)"}},
       {score(x, {2, 3, 0}, {2, 4}, 2, 0), {"additive_score: ", "kv_heads (0) must divide heads (2)"}},
       {score(x, {2, 3, 6}, {4, 2}, 4, 3), {"additive_score: ", "kv_heads (3) must divide heads (4)"}},
       {score(x, x, {2, 4, 1}, 2, 2), {"additive_score: ", "weight (2, 4, 1)", "(heads, D)"}},
       {score(x, x, {3, 4}, 2, 2), {"additive_score: ", "weight (3, 4), heads 2"}},
       {score({2, 3, 6}, x, {2, 4}, 2, 2), {"additive_score: ", "q (2, 3, 6)"}},
       {score(x, x, {2, 4}, 2, 1), {"additive_score: ", "k (2, 3, 8)", "kv_heads 1"}}});
}

TEST_CASE("queries and keys may be columns of one projection, even the same", "[ops]") {
  // Tensors of their own first, then columns 1 .. 4 and 3 .. 4 of a wider one.
  constexpr std::int64_t kHeads = 2, kTime = 5;
  const Tensor weight = normal_scores({kHeads, 2}, 0), packed = normal_scores({2, kTime, 6}, 1);
  const Tensor seed = normal_scores({2 * kHeads * kTime, kTime}, 2);
  const auto copy = [&](std::int64_t first, std::int64_t count) {
    Tensor part({2, kTime, count});
    for (std::int64_t r = 0; r < 2 * kTime; ++r)
      std::copy_n(packed.matrix().row(r) + first, count, part.matrix().row(r));
    return part;
  };
  Tape apart;
  const Var q = apart.variable(copy(1, 4)), k = apart.variable(copy(3, 2));
  const Var expected = additive_score(q, k, apart.constant(weight), kHeads, 1);
  apart.backward(expected, seed.matrix());
  Tensor gradient({2, kTime, 6});
  for (std::int64_t r = 0; r < 2 * kTime; ++r) {
    for (std::int64_t c = 0; c < 4; ++c) gradient.matrix().row(r)[1 + c] += q.grad().row(r)[c];
    for (std::int64_t c = 0; c < 2; ++c) gradient.matrix().row(r)[3 + c] += k.grad().row(r)[c];
  }

  Tape together;
  const Var x = together.variable(packed);
  const Var scores = additive_score({x, 1, 4}, {x, 3, 2}, together.constant(weight), kHeads, 1);
  together.backward(scores, seed.matrix());
  CHECK(scores.shape() == Shape{2, kHeads, kTime, kTime});
  tests::compare("scores", scores.shape(), tests::elements(scores.value()),
                 tests::elements(expected.value()));
  tests::compare("dx", x.shape(), tests::elements(x.grad()), gradient.values());
}

TEST_CASE("additive scores take the memory of scores, not of every pair's columns", "[ops]") {
  constexpr std::int64_t kTime = 256;
  const double pairs = 2.0 * 2 * kTime * kTime * sizeof(Real);  // B H T T
  for (const std::int64_t d_key : {1, 16, 64}) {
    const double operands = (2.0 * kTime + 1) * 2 * static_cast<double>(2 * d_key) * sizeof(Real);
    CAPTURE(d_key);
    // The scores, the operands, the gradients of both, and one head at work.
    CHECK(tape_bytes(kTime, d_key) < 2 * pairs + 3 * operands);
    CHECK(tape_bytes(kTime, d_key) > 2 * pairs + 2 * operands);
  }
}
