// Fused attention against matmul, scale, softmax and matmul for every head.
#include <algorithm>
#include <cmath>

#include "catch.h"
#include "fixtures_compare.h"
#include "thimble/engine/ops.h"

using namespace thimble;

namespace {

Tensor normal(const Shape& shape, std::uint32_t which) {
  const Random random(5, Stream::gradcheck);
  Tensor x(shape);
  std::uint64_t i = 0;
  for (Real& value : x.values()) value = static_cast<Real>(random.normal(i++, which));
  return x;
}

Tensor copy_of(const Shape& shape, ConstMatrixView from) {
  Tensor to(shape);
  for (std::int64_t r = 0; r < from.rows; ++r) std::copy_n(from.row(r), from.cols, to.data() + r * from.cols);
  return to;
}

Tensor copy_of(ConstMatrixView from) { return copy_of({from.rows, from.cols}, from); }

void copy_into(MatrixView to, ConstMatrixView from) {
  for (std::int64_t r = 0; r < from.rows; ++r) std::copy_n(from.row(r), from.cols, to.row(r));
}

void add_into(MatrixView to, ConstMatrixView from) {
  for (std::int64_t r = 0; r < from.rows; ++r) {
    for (std::int64_t c = 0; c < from.cols; ++c) to.row(r)[c] += from.row(r)[c];
  }
}

Tensor transposed(ConstMatrixView x) {
  Tensor y({x.cols, x.rows});
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t c = 0; c < x.cols; ++c) y.matrix().row(c)[r] = x.row(r)[c];
  }
  return y;
}

// Returns one head (T, D) of one sequence of x (B, T, H D).
MatrixView head(Tensor& x, std::int64_t b, std::int64_t h, std::int64_t heads) {
  const std::int64_t time = x.shape()[1], columns = x.shape()[2] / heads;
  return x.matrix().row_block(b * time, time).column_block(h * columns, columns);
}

// Returns the addend of the scores of one head of one sequence: -1e9 for hidden keys, and ALiBi.
Tensor hidden_scores(const kernels::AttentionMask& mask, std::int64_t b, std::size_t h, std::int64_t queries,
                     std::int64_t keys) {
  Tensor x({queries, keys});
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      const bool padding = !mask.lengths.empty() && j >= mask.lengths[static_cast<std::size_t>(b)];
      Real& score = x.matrix().row(i)[j];
      if (padding || (mask.causal && j > mask.first_query + i)) score = Real(-1e9);
      if (!mask.slopes.empty())
        score -= mask.slopes[h] * static_cast<Real>(std::abs(mask.first_query + i - j));
    }
  }
  return x;
}

struct Operands {
  Tensor q, k, v, out;
};

// out, and the gradients of sum(cotangent * out), by the plain ops.
struct Composed {
  Operands values, gradients;

  Composed(Operands inputs, Tensor cotangent, const AttentionOptions& options)
      : values(std::move(inputs)),
        gradients{Tensor(values.q.shape()), Tensor(values.k.shape()), Tensor(values.v.shape()),
                  std::move(cotangent)} {
    for (std::int64_t b = 0; b < values.q.shape()[0]; ++b) {
      for (std::int64_t h = 0; h < options.heads; ++h) compose(b, h, options);
    }
  }

 private:
  void compose(std::int64_t b, std::int64_t h, const AttentionOptions& options) {
    const std::int64_t kv_heads = options.kv_heads;
    const auto of = [&](Tensor& x) { return head(x, b, h, options.heads); };
    const auto shared = [&](Tensor& x) { return head(x, b, h * kv_heads / options.heads, kv_heads); };
    const MatrixView qh = of(values.q), kh = shared(values.k), vh = shared(values.v);
    Tape tape;
    const Var q = tape.variable(copy_of(qh));
    const Var k_transposed = tape.variable(transposed(kh));
    const Var v = tape.variable(copy_of(vh));
    const Real factor =
        options.scale.value_or(static_cast<Real>(1 / std::sqrt(static_cast<double>(qh.cols))));
    const Var scores = scale(matmul(q, k_transposed), factor);
    Var weights = softmax(add(scores, tape.constant(hidden_scores(
                                          options.mask, b, static_cast<std::size_t>(h), qh.rows, kh.rows))));
    if (options.dropout > 0) {
      // A draw belongs to an element of a sequence: one head and one query make that an element of this
      // matrix.
      REQUIRE(options.heads * qh.rows == 1);
      kernels::DropoutKey key = *options.key;
      key.first_sample += static_cast<std::uint32_t>(b);
      weights = dropout(weights, options.dropout, key);
    }
    const Var out = matmul(weights, v);
    tape.backward(out, copy_of(of(gradients.out)).matrix());
    copy_into(of(values.out), out.value());
    copy_into(of(gradients.q), q.grad());
    add_into(shared(gradients.k), transposed(k_transposed.grad()).matrix());
    add_into(shared(gradients.v), v.grad());
  }
};

struct Sizes {
  std::int64_t batch, queries, keys, d_key, d_value;
};

// Checks attention that keeps its weights, and attention that does not.
void check_attention(const Sizes& s, AttentionOptions options) {
  const std::int64_t kv_heads = options.kv_heads;
  const Composed expected(
      {normal({s.batch, s.queries, options.heads * s.d_key}, 0),
       normal({s.batch, s.keys, kv_heads * s.d_key}, 1), normal({s.batch, s.keys, kv_heads * s.d_value}, 2),
       Tensor({s.batch, s.queries, options.heads * s.d_value})},
      normal({s.batch, s.queries, options.heads * s.d_value}, 3), options);
  for (const bool keep_weights : {true, false}) {
    CAPTURE(keep_weights);
    options.keep_weights = keep_weights;
    Tape tape;
    const Var q = tape.variable(expected.values.q), k = tape.variable(expected.values.k),
              v = tape.variable(expected.values.v);
    const Var out = attention(q, k, v, options);
    tape.backward(out, expected.gradients.out.matrix());
    const auto compare = [](const std::string& name, const Tensor& wanted, MatrixView x) {
      tests::compare(name, wanted.shape(), tests::elements(x), wanted.values());
    };
    compare("out", expected.values.out, out.value());
    compare("dq", expected.gradients.q, q.grad());
    compare("dk", expected.gradients.k, k.grad());
    compare("dv", expected.gradients.v, v.grad());
  }
}

// Query, key and value side by side in one tensor, the gradients too.
void check_self_attention(std::int64_t batch, std::int64_t time, std::int64_t channels,
                          AttentionOptions options) {
  Tensor packed = normal({batch, time, 3 * channels}, 4);
  const Shape shape{batch, time, channels};
  const auto third = [&](Tensor& x, std::int64_t i) {
    return x.matrix().column_block(i * channels, channels);
  };
  const Composed expected({copy_of(shape, third(packed, 0)), copy_of(shape, third(packed, 1)),
                           copy_of(shape, third(packed, 2)), Tensor(shape)},
                          normal(shape, 5), options);
  Tensor gradient(packed.shape());
  copy_into(third(gradient, 0), expected.gradients.q.matrix());
  copy_into(third(gradient, 1), expected.gradients.k.matrix());
  copy_into(third(gradient, 2), expected.gradients.v.matrix());

  for (const bool keep_weights : {true, false}) {
    CAPTURE(keep_weights);
    options.keep_weights = keep_weights;
    Tape tape;
    const Var qkv = tape.variable(packed);
    const Var out =
        attention({qkv, 0, channels}, {qkv, channels, channels}, {qkv, 2 * channels, channels}, options);
    tape.backward(out, expected.gradients.out.matrix());
    tests::compare("out", shape, tests::elements(out.value()), expected.values.out.values());
    tests::compare("dqkv", packed.shape(), tests::elements(qkv.grad()), gradient.values());
  }
}

}  // namespace

TEST_CASE("attention equals its composition of plain ops", "[ops][attention]") {
  const std::vector<std::int32_t> lengths{3, 1};
  AttentionOptions options;
  SECTION("one of everything") { check_attention({1, 1, 1, 1, 1}, options); }
  SECTION("all sizes different") {
    options.heads = options.kv_heads = 2;
    check_attention({3, 5, 11, 7, 13}, options);
  }
  SECTION("more than whole vectors") {
    options.heads = options.kv_heads = 2;
    check_attention({2, 19, 37, 17, 40}, options);
  }
  SECTION("a scale of its own") {
    options.scale = Real(0.3);
    check_attention({2, 3, 5, 7, 2}, options);
  }
  SECTION("padding") {
    options.heads = options.kv_heads = 3;
    options.mask.lengths = lengths;
    check_attention({2, 5, 7, 2, 3}, options);
  }
  SECTION("causal") {
    options.heads = options.kv_heads = 2;
    options.mask.causal = true;
    check_attention({2, 35, 35, 3, 5}, options);
  }
  SECTION("causal with padding") {
    options.mask = {true, lengths};
    check_attention({2, 5, 5, 3, 2}, options);
  }
  SECTION("heads that share keys and values") {
    options.heads = options.kv_heads = 6;
    for (const std::int64_t kv_heads : {1, 2, 3, 6}) {
      options.kv_heads = kv_heads;
      check_attention({2, 5, 7, 3, 4}, options);
    }
  }
  SECTION("causal, queries from a later position on") {
    options.heads = options.kv_heads = 4;
    options.kv_heads = 2;
    options.mask = {.causal = true, .lengths = lengths, .first_query = 4};
    check_attention({2, 3, 7, 2, 3}, options);
  }
  SECTION("ALiBi") {
    const std::vector<Real> slopes{Real(0.5), Real(0.1)};
    options.heads = options.kv_heads = 2;
    options.mask.slopes = slopes;
    check_attention({2, 5, 9, 2, 3}, options);
    options.mask = {.causal = true, .lengths = lengths, .first_query = 4, .slopes = slopes};
    check_attention({2, 3, 7, 2, 3}, options);
  }
  SECTION("several blocks of queries") {
    const std::vector<Real> slopes{Real(0.5), Real(0.1)};
    const std::vector<std::int32_t> cut{70, 33};
    options.heads = 2;
    options.mask = {.causal = true, .lengths = cut, .first_query = 5, .slopes = slopes};
    check_attention({2, 65, 70, 3, 4}, options);
    options.mask = {.lengths = cut};
    check_attention({2, 65, 70, 3, 4}, options);
  }
  SECTION("dropout of the weights") {
    options.dropout = Real(0.4);
    options.key = kernels::DropoutKey{Random(3, Stream::dropout), 1, 6, 2};
    check_attention({5, 1, 9, 3, 2}, options);
  }
}

TEST_CASE("attention inside one projection equals its composition of plain ops", "[ops][attention]") {
  const std::vector<std::int32_t> lengths{4, 6};
  AttentionOptions options;
  options.heads = options.kv_heads = 3;
  SECTION("everything visible") { check_self_attention(2, 6, 12, options); }
  SECTION("causal with padding") {
    options.mask = {true, lengths};
    check_self_attention(2, 6, 12, options);
  }
  SECTION("more than whole vectors") { check_self_attention(1, 33, 3 * 17, options); }
}

TEST_CASE("attention keeps weights for hooks, and those of short sequences", "[ops][attention]") {
  const auto bytes = [](std::int64_t time, std::optional<bool> keep_weights, Hooks* hooks = nullptr) {
    AttentionOptions options;
    options.keep_weights = keep_weights;
    options.hooks = hooks;
    Tape tape;
    const Var x = tape.variable(normal({1, time, 4}, 0));
    attention(x, x, x, options);
    return tape.bytes();
  };
  CHECK(bytes(1024, true) > 1024 * 1024 * sizeof(Real));
  CHECK(bytes(1024, false) < 1024 * 1024 * sizeof(Real) / 4);
  CHECK(bytes(1024, {}) == bytes(1024, false));
  CHECK(bytes(100, {}) == bytes(100, true));
  CHECK(bytes(100, true) != bytes(100, false));
  for (const std::optional<bool> keep_weights : {std::optional<bool>(), std::optional(false)}) {
    tests::Capture capture;
    CHECK(bytes(1024, keep_weights, &capture) > 3 * bytes(1024, true) / 2);  // hooks may replace them
    CHECK(capture.value().shape() == Shape{1, 1, 1024, 1024});
  }
}

TEST_CASE("one tensor gets the gradients of queries, keys and values without weights", "[ops][attention]") {
  AttentionOptions options;
  options.heads = options.kv_heads = 2;
  options.mask.causal = true;
  const Tensor values = normal({2, 70, 12}, 0), cotangent = normal({2, 70, 4}, 1);
  const auto gradient = [&](std::int64_t first_key, std::int64_t first_value, bool keep_weights) {
    options.keep_weights = keep_weights;
    Tape tape;
    const Var x = tape.variable(values);
    tape.backward(attention({x, 0, 4}, {x, first_key, 4}, {x, first_value, 4}, options), cotangent.matrix());
    return copy_of(values.shape(), x.grad());
  };
  // Side by side; queries are the keys; all are one; columns that overlap in part.
  for (const auto& [k, v] : {std::pair{4, 8}, {0, 4}, {0, 0}, {2, 8}}) {
    CAPTURE(k, v);
    const Tensor expected = gradient(k, v, true), actual = gradient(k, v, false);
    tests::compare("dx", values.shape(), actual.values(), expected.values());
  }
}

TEST_CASE("attend equals attention whose scores are given", "[ops][attention]") {
  const std::vector<std::int32_t> lengths{3, 6};
  const std::vector<Real> slopes{Real(0.5), Real(0.1), Real(0), Real(0.2)};
  AttentionOptions options;
  options.heads = options.kv_heads = 4;
  options.kv_heads = 2;
  options.scale = Real(0.7);
  options.mask = {.causal = true, .lengths = lengths, .first_query = 1, .slopes = slopes};
  options.dropout = Real(0.3);
  options.key = kernels::DropoutKey{Random(3, Stream::dropout), 1, 0, 2};
  const Tensor q = normal({2, 5, 12}, 0), k = normal({2, 6, 6}, 1), v = normal({2, 6, 8}, 2);
  Tensor scores({2, 4, 5, 6});
  for (std::int64_t row = 0; row < 2 * 4 * 5; ++row) {
    const std::int64_t b = row / 20, h = row / 5 % 4, i = row % 5;
    for (std::int64_t j = 0; j < 6; ++j) {
      for (std::int64_t d = 0; d < 3; ++d) {
        scores.matrix().row(row)[j] +=
            Real(0.7) * q.matrix().row(b * 5 + i)[h * 3 + d] * k.matrix().row(b * 6 + j)[h / 2 * 3 + d];
      }
    }
  }
  Tape tape;
  const Var values = tape.variable(v), given = tape.variable(scores);
  const Var expected = attention(tape.constant(q), tape.constant(k), values, options);
  const Var actual = attend(given, values, options);
  tests::compare("out", actual.shape(), tests::elements(actual.value()), tests::elements(expected.value()));
  // The values alone may need a gradient.
  const Var only_values = attend(tape.constant(scores), values, options);
  CHECK(only_values.needs_grad());
  CHECK_FALSE(attend(tape.constant(scores), tape.constant(v), options).needs_grad());
}
