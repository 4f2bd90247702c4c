// The messages of ops for shapes that do not fit: name, shapes, rule.
#include "engine/ops/misuse.h"
#include "thimble/engine/error.h"

using namespace thimble;
using tests::expect_refused, tests::of;

namespace {

using Numbers = std::vector<std::int32_t>;

AttentionOptions with_lengths(const Numbers& lengths) {
  AttentionOptions options;
  options.mask.lengths = lengths;
  return options;
}

AttentionOptions with_heads(std::int64_t heads) {
  AttentionOptions options;
  options.heads = options.kv_heads = heads;
  return options;
}

const Numbers kNone, kOne{1}, kTwo{1, 1}, kThree{1, 1, 1}, kZero{1, 0}, kFive{1, 5}, kNegative{1, -1};

}  // namespace

TEST_CASE("sums and products name the shapes that do not fit", "[ops]") {
  expect_refused({
      {[](Tape& t) { add(of(t, 2, 3), of(t, 3, 2)); }, {"add: ", "(2, 3)", "(3, 2)", "equal"}},
      {[](Tape& t) { add(of(t, 2, 3), of(t, 2, 3, 1)); }, {"add: ", "(2, 3, 1)"}},
      {[](Tape& t) { mul(of(t, 2, 3), of(t, 3, 2)); }, {"mul: ", "(2, 3)", "(3, 2)", "equal"}},
      {[](Tape& t) { matmul(of(t, 2, 3), of(t, 4, 5)); },
       {"matmul: ", "(2, 3)", "(4, 5)", "inner dimensions", "3 vs 4"}},
      {[](Tape& t) { matmul(of(t, 2, 3, 4), of(t, 4, 5)); }, {"matmul: ", "(2, 3, 4)", "(4, 5)", "matrices"}},
      {[](Tape& t) { matmul(of(t, 2, 4), of(t, 4)); }, {"matmul: ", "(2, 4)", "(4)", "matrices"}},
      {[](Tape& t) { linear(of(t, 2, 3), of(t, 5, 4)); }, {"linear: ", "(2, 3)", "(5, 4)", "3 vs 4"}},
      {[](Tape& t) { linear(of(t, 2, 3), of(t, 3)); }, {"linear: ", "(2, 3)", "(3)"}},
      {[](Tape& t) { linear(of(t, 2, 3), of(t, 5, 2, 3)); }, {"linear: ", "(2, 3)", "(5, 2, 3)", "3 vs 6"}},
      {[](Tape& t) { linear(of(t, 2, 3), of(t, 5, 3), of(t, 3)); },
       {"linear: ", "bias (3)", "(5, 3)", "(5)"}},
      {[](Tape& t) { linear(of(t, 2, 3), of(t, 5, 3), of(t, 1, 5)); }, {"linear: ", "bias (1, 5)", "(5)"}},
  });
}

TEST_CASE("row-wise ops name the shapes that do not fit", "[ops]") {
  expect_refused({
      {[](Tape& t) { softmax(of(t, 2, 0)); }, {"softmax: ", "(2, 0)", "empty"}},
      {[](Tape& t) { layer_norm(of(t, 2, 3), of(t, 2), of(t, 3)); },
       {"layer_norm: ", "(2, 3)", "weight (2)", "must be (3)"}},
      {[](Tape& t) { layer_norm(of(t, 2, 3), of(t, 3), of(t, 1, 3)); },
       {"layer_norm: ", "bias (1, 3)", "must be (3)"}},
      {[](Tape& t) { rms_norm(of(t, 2, 3), of(t, 1, 3)); },
       {"rms_norm: ", "(2, 3)", "weight (1, 3)", "must be (3)"}},
      {[](Tape& t) { dropout(of(t, 2, 3), 1, {Random(1, Stream::dropout)}); },
       {"dropout: ", "probability (1)", "below 1"}},
      {[](Tape& t) { dropout(of(t, 2, 3), Real(-0.5), {Random(1, Stream::dropout)}); },
       {"dropout: ", "-0.5", "at least 0"}},
      {[](Tape& t) {
         dropout(of(t, 2, 3), std::numeric_limits<Real>::quiet_NaN(), {Random(1, Stream::dropout)});
       },
       {"dropout: ", "nan"}},
      {[](Tape& t) { dropout(of(t, 0, 3), Real(0.5), {Random(1, Stream::dropout)}); },
       {"dropout: ", "(0, 3)"}},
      {[](Tape& t) { dropout(of(t), Real(0.5), {Random(1, Stream::dropout)}); }, {"dropout: ", "()"}},
      {[](Tape& t) { cross_entropy(of(t, 2, 3), kThree); },
       {"cross_entropy: ", "3 labels", "(2, 3)", "2 rows"}},
      {[](Tape& t) { cross_entropy(of(t, 2, 3), kNone); }, {"cross_entropy: ", "0 labels", "(2, 3)"}},
      {[](Tape& t) { cross_entropy(of(t, 2, 5), kFive); }, {"cross_entropy: ", "label 5", "0 .. 4"}},
  });
}

TEST_CASE("embedding and positions name what does not fit", "[ops]") {
  expect_refused({
      {[](Tape& t) { embedding(of(t, 5), kTwo, 2); }, {"embedding: ", "(5)", "(vocabulary, channels)"}},
      {[](Tape& t) { embedding(of(t, 5, 3), kThree, 2); }, {"embedding: ", "3 tokens", "sequences of 2"}},
      {[](Tape& t) { embedding(of(t, 5, 3), kThree, 0); }, {"embedding: ", "3 tokens", "sequences of 0"}},
      {[](Tape& t) { embedding(of(t, 5, 3), kThree, -3); }, {"embedding: ", "sequences of -3"}},
      {[](Tape& t) { embedding(of(t, 5, 3), kFive, 2); }, {"embedding: ", "token 5", "0 .. 4"}},
      {[](Tape& t) { embedding(of(t, 5, 3), kNegative, 2); }, {"embedding: ", "token -1", "0 .. 4"}},
      {[](Tape& t) { add_positions(of(t, 6, 4), of(t, 6, 4)); },
       {"add_positions: ", "x (6, 4)", "(batch, time, channels)"}},
      {[](Tape& t) { add_positions(of(t, 2, 3, 4), of(t, 3, 5)); },
       {"add_positions: ", "(2, 3, 4)", "(3, 5)"}},
      {[](Tape& t) { add_positions(of(t, 2, 3, 4), of(t, 2, 4)); },
       {"add_positions: ", "positions (2, 4)", "at least (time"}},
      {[](Tape& t) { add_positions(of(t, 2, 3, 4), of(t, 1, 3, 4)); },
       {"add_positions: ", "positions (1, 3, 4)"}},
  });
}

TEST_CASE("pools name what does not fit", "[ops]") {
  expect_refused({
      {[](Tape& t) { mean_pool(of(t, 2, 3)); }, {"mean_pool: ", "(2, 3)", "(batch, time, channels)"}},
      {[](Tape& t) { first_pool(of(t, 2, 3)); }, {"first_pool: ", "(2, 3)"}},
      {[](Tape& t) { last_pool(of(t, 2, 0, 3)); }, {"last_pool: ", "(2, 0, 3)"}},
      {[](Tape& t) { mean_pool(of(t, 2, 4, 3), kThree); }, {"mean_pool: ", "3 lengths", "batch of 2"}},
      {[](Tape& t) { mean_pool(of(t, 2, 4, 3), kZero); },
       {"mean_pool: ", "length 0 of sequence 1", "1 .. 4"}},
      {[](Tape& t) { last_pool(of(t, 2, 4, 3), kFive); }, {"last_pool: ", "length", "1 .. 4"}},
  });
}

TEST_CASE("unfold names what does not fit", "[ops]") {
  expect_refused({
      {[](Tape& t) { unfold(of(t, 2, 3), 3, false); }, {"unfold: ", "(2, 3)", "(batch, time, channels)"}},
      {[](Tape& t) { unfold(of(t, 2, 3, 4), 2, false); }, {"unfold: ", "2 positions", "odd"}},
      {[](Tape& t) { unfold(of(t, 2, 3, 4), 0, true); }, {"unfold: ", "0 positions", "positive"}},
      {[](Tape& t) { unfold(of(t, 2, 4, 3), 3, false, kThree); }, {"unfold: ", "3 lengths", "batch of 2"}},
      {[](Tape& t) { unfold(of(t, 2, 4, 3), 3, false, kFive); }, {"unfold: ", "length", "0 .. 4"}},
      {[](Tape& t) { unfold(of(t, 2, 4, 3), 3, false, kNegative); }, {"unfold: ", "length", "0 .. 4"}},
  });
}

TEST_CASE("parts of a weight and rows of a matrix must be there", "[ops]") {
  const auto part = [](std::int64_t first, std::int64_t count) {
    return [=](Tape& t) { linear_part(of(t, 2, 3), of(t, 5, 3), of(t, 5), first, count); };
  };
  const auto row = [](std::int32_t index) {
    return [=](Tape& t) { select_rows(of(t, 2, 3), std::vector{index}); };
  };
  expect_refused({
      {part(-1, 2), {"linear_part: ", "outputs -1 .. 0", "there are 5"}},
      {part(1, 0), {"linear_part: ", "outputs 1 .. 0", "there are 5"}},
      {part(4, 2), {"linear_part: ", "outputs 4 .. 5", "there are 5"}},
      {row(-1), {"select_rows: ", "row -1", "2 rows"}},
      {row(2), {"select_rows: ", "row 2", "2 rows"}},
  });
}

TEST_CASE("attention names what does not fit", "[ops]") {
  const auto attend = [](const Shape& q, const Shape& k, const Shape& v,
                         const AttentionOptions& options = {}) {
    return [=](Tape& t) { attention(of(t, q), of(t, k), of(t, v), options); };
  };
  AttentionOptions causal, later, keyless;
  causal.mask.causal = later.mask.causal = true;
  later.mask.first_query = 2;
  keyless.dropout = Real(0.5);
  expect_refused({
      {attend({2, 4}, {2, 3, 4}, {2, 3, 4}),
       {"attention: ", "q (2, 4)", "k (2, 3, 4)", "(batch, time, channels)"}},
      {attend({2, 3, 4}, {2, 4}, {2, 3, 4}), {"attention: ", "k (2, 4)", "(batch, time, channels)"}},
      {attend({2, 3, 4}, {2, 3, 4}, {2, 4}), {"attention: ", "v (2, 4)", "(batch, time, channels)"}},
      {attend({1, 3, 4}, {2, 3, 4}, {2, 3, 4}), {"attention: ", "q (1, 3, 4)", "one batch"}},
      {attend({2, 3, 4}, {2, 3, 4}, {1, 3, 4}), {"attention: ", "v (1, 3, 4)", "one batch"}},
      {attend({2, 3, 4}, {2, 3, 6}, {2, 3, 4}),
       {"attention: ", "k (2, 3, 6)", "k must have 4 channels, not 6"}},
      {attend({2, 3, 4}, {2, 5, 4}, {2, 3, 4}), {"attention: ", "k (2, 5, 4)", "v (2, 3, 4)", "same time"}},
      {attend({2, 3, 4}, {2, 3, 4}, {2, 3, 6}, with_heads(3)), {"attention: ", "q (2, 3, 4)", "heads (3)"}},
      {attend({2, 3, 4}, {2, 3, 4}, {2, 3, 3}, with_heads(2)), {"attention: ", "v (2, 3, 3)", "heads (2)"}},
      {attend({2, 3, 4}, {2, 3, 4}, {2, 3, 4}, with_heads(0)), {"attention: ", "heads (0)"}},
      {attend({2, 3, 4}, {2, 3, 4}, {2, 3, 4}, with_heads(-1)), {"attention: ", "heads (-1)"}},
      {attend({2, 3, 4}, {2, 5, 4}, {2, 5, 4}, causal),
       {"attention: ", "3 queries", "5 keys", "causal", "requires 3 keys"}},
      {attend({2, 3, 4}, {2, 4, 4}, {2, 4, 4}, later),
       {"attention: ", "query 0 at position 2 requires 5 keys"}},
      {attend({2, 3, 4}, {2, 4, 4}, {2, 4, 4}, with_lengths(kThree)),
       {"attention: ", "3 lengths", "batch of 2"}},
      {attend({2, 3, 4}, {2, 4, 4}, {2, 4, 4}, with_lengths(kFive)), {"attention: ", "length", "0 .. 4"}},
      {attend({2, 3, 4}, {2, 4, 4}, {2, 4, 4}, with_lengths(kNegative)), {"attention: ", "length", "0 .. 4"}},
      {attend({2, 3, 4}, {2, 4, 4}, {2, 4, 4}, keyless), {"attention: ", "dropout", "key"}},
  });
}

TEST_CASE("shared keys and values must fit", "[ops]") {
  const auto attend = [](const Shape& q, const Shape& k, const Shape& v, std::int64_t heads,
                         std::int64_t kv_heads) {
    AttentionOptions options = with_heads(heads);
    options.kv_heads = kv_heads;
    return [=](Tape& t) { attention(of(t, q), of(t, k), of(t, v), options); };
  };
  expect_refused({
      {attend({2, 3, 12}, {2, 3, 12}, {2, 3, 12}, 4, 3), {"attention: ", "kv_heads (3) must divide heads"}},
      {attend({2, 3, 12}, {2, 3, 12}, {2, 3, 12}, 4, 0), {"attention: ", "kv_heads (0) must divide heads"}},
      {attend({2, 3, 12}, {2, 3, 12}, {2, 3, 12}, 4, 2), {"attention: ", "k must have 6 channels, not 12"}},
      {attend({2, 3, 12}, {2, 3, 6}, {2, 3, 5}, 4, 2), {"attention: ", "v (2, 3, 5)", "channels of v"}},
  });
}

TEST_CASE("attention without softmax takes no slopes, and hands out no weights of one", "[ops]") {
  static const std::vector<Real> slopes(2);
  AttentionOptions linear = with_heads(2), sloped = linear;
  linear.softmax = sloped.softmax = false;
  sloped.mask.slopes = slopes;
  expect_refused({
      {[=](Tape& t) { attention(of(t, 1, 3, 4), of(t, 1, 3, 4), of(t, 1, 3, 4), sloped); },
       {"attention: ", "ALiBi requires the softmax"}},
      {[=](Tape& t) { attend(of(t, 1, 2, 3, 3), of(t, 1, 3, 4), linear); },
       {"attend: the weights require the softmax"}},
  });
  Tape tape;
  const Var x = of(tape, 1, 3, 4);
  CHECK_THROWS_AS(scored_attention(Score::none, x, x, x, std::nullopt, linear), Error);
}

TEST_CASE("attention has gradients of the inputs that need one", "[ops]") {
  for (const std::optional<bool> keeps : {true, false}) {
    AttentionOptions options = with_heads(2);
    options.keep_weights = keeps;
    for (int which = 0; which < 3; ++which) {
      Tape all, one;
      std::vector<Var> every, single;
      for (int i = 0; i < 3; ++i) {
        Tensor x({1, 3, 4});
        for (std::size_t j = 0; j < x.values().size(); ++j)
          x.values()[j] = static_cast<Real>((i * 7 + static_cast<int>(j) * 5) % 11) / 4;
        every.push_back(all.variable(x));
        single.push_back(i == which ? one.variable(x) : one.constant(x));
      }
      const auto gradient = [&](Tape& tape, const std::vector<Var>& in) {
        const std::vector<Real> seed(12, 1);
        tape.backward(attention(in[0], in[1], in[2], options), ConstMatrixView{seed.data(), 3, 4, 4});
        const ConstMatrixView g = in[static_cast<std::size_t>(which)].grad();
        return std::vector<Real>(g.data, g.data + g.rows * g.cols);
      };
      CAPTURE(which, *keeps);
      CHECK(gradient(all, every) == gradient(one, single));
    }
  }
}

TEST_CASE("keys and values of one constant need no gradient", "[ops]") {
  Tape tape;
  const Var q = of(tape, 1, 3, 4), kv = tape.constant(Tensor({1, 3, 8}));
  const Var y = attention(q, Columns(kv, 0, 4), Columns(kv, 4, 4), with_heads(2));
  const std::vector<Real> seed(12, 1);
  tape.backward(y, ConstMatrixView{seed.data(), 3, 4, 4});
  CHECK(q.grad().rows == 3);
  CHECK_FALSE(kv.needs_grad());
}

TEST_CASE("attend names what does not fit", "[ops]") {
  const auto mix = [](const Shape& scores, const Shape& v, AttentionOptions options) {
    return [=](Tape& t) { attend(of(t, scores), of(t, v), options); };
  };
  static const std::vector<Real> slopes(3);
  AttentionOptions sloped = with_heads(2), shared = with_heads(2), keyless = with_heads(2),
                   late = with_heads(2), unshared = with_heads(2);
  unshared.kv_heads = 0;
  sloped.mask.slopes = slopes;
  shared.kv_heads = 3;
  keyless.dropout = Real(0.5);
  late.mask.causal = true;
  expect_refused({
      {mix({2, 2, 3}, {2, 3, 4}, with_heads(2)),
       {"attend: ", "scores (2, 2, 3)", "(batch, heads, queries, keys)"}},
      {mix({2, 2, 3, 5}, {2, 3, 4}, with_heads(2)), {"attend: ", "v (2, 3, 4)"}},
      {mix({2, 2, 3, 5}, {5, 4}, with_heads(2)), {"attend: ", "v (5, 4)", "(batch, keys, channels)"}},
      {mix({2, 2, 3, 5}, {3, 5, 4}, with_heads(2)), {"attend: ", "v (3, 5, 4)"}},
      {mix({2, 2, 3, 5}, {2, 5, 4}, with_heads(4)), {"attend: ", "must have 4 heads"}},
      {mix({2, 0, 3, 5}, {2, 5, 4}, with_heads(0)), {"attend: ", "must have 0 heads"}},
      {mix({2, 2, 3, 5}, {2, 5, 4}, shared), {"attend: ", "kv_heads (3)"}},
      {mix({2, 2, 3, 5}, {2, 5, 4}, unshared), {"attend: ", "kv_heads (0)"}},
      {mix({2, 2, 3, 5}, {2, 5, 3}, with_heads(2)), {"attend: ", "kv_heads (2)", "channels of v"}},
      {mix({2, 2, 3, 5}, {2, 5, 4}, sloped), {"attend: ", "3 slopes for 2 heads"}},
      {mix({2, 2, 3, 5}, {2, 5, 4}, keyless), {"attend: ", "requires a key"}},
      {mix({2, 2, 3, 5}, {2, 5, 4}, late), {"attend: ", "requires 3 keys"}},
  });
}

TEST_CASE("a dropout of the weights outside [0, 1) is refused", "[ops]") {
  for (const Real p : {Real(1), Real(1.5), Real(-0.5)}) {
    Tape tape;
    AttentionOptions options;
    options.dropout = p;
    options.key = kernels::DropoutKey{Random(1, Stream::dropout)};
    CAPTURE(p);
    const Var x = of(tape, 2, 4, 12);
    CHECK_THROWS_AS(attention(x, x, x, options), ShapeError);
  }
}

TEST_CASE("what fits at the edge is accepted", "[ops]") {
  Tape t;
  CHECK(embedding(of(t, 5, 3), kNone, 2).shape() == Shape{0, 2, 3});
  CHECK(add_positions(of(t, 2, 3, 4), of(t, 7, 4)).shape() == Shape{2, 3, 4});
  CHECK(attention(of(t, 2, 3, 4), of(t, 2, 4, 4), of(t, 2, 4, 6), with_lengths(kZero)).shape() ==
        Shape{2, 3, 6});
  CHECK(cross_entropy(of(t, 2, 3), kNegative).shape() == Shape{1});
  CHECK(linear(of(t, 2, 3, 5), of(t, 7, 5)).shape() == Shape{2, 3, 7});
  CHECK(matmul(of(t, 1, 1), of(t, 1, 1)).shape() == Shape{1, 1});
  CHECK(dropout(of(t, 2), 0, {Random(1, Stream::dropout)}).shape() == Shape{2});
}
