// Attention against plain loops in long double.
#include "engine/kernels/attention/attention_steps.h"

#include "catch.h"
#include "engine/kernels/dropout.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/reference_attention.h"

using namespace thimble;

namespace {

constexpr std::int64_t kBatch = 2, kHeads = 2;
constexpr Real kScale = Real(0.4);

using Lengths = std::vector<std::int32_t>;

struct Case {
  std::int64_t queries, keys, d_key, d_value;
  kernels::AttentionMask mask;
  std::int64_t gap = 0;
  bool dropout = false, softmax = true;

  kernels::AttentionPass pass(const kernels::KeptWeights& kept) const {
    kernels::AttentionPass pass{
        .sizes = sizes(), .mask = mask, .scale = kScale, .dropout = Real(0.3), .kept = kept};
    if (dropout) pass.key = kernels::DropoutKey{Random(1, Stream::dropout)};
    return pass;
  }
  AttentionSizes sizes() const {
    return {.heads = kHeads,
            .kv_heads = kHeads,
            .d_key = d_key,
            .d_value = d_value,
            .softmax = softmax,
            .batch = kBatch,
            .queries = queries,
            .keys = keys};
  }
};

// The inputs and the results of the kernels.
struct Run {
  Matrix q, k, v, dout, weights, dropped_weights, factor, out, dq, dk, dv, scratch;
  const Matrix dq_before, dk_before, dv_before;

  explicit Run(const Case& c)
      : q(kBatch * c.queries, kHeads * c.d_key, 1, c.gap),
        k(kBatch * c.keys, kHeads * c.d_key, 2, c.gap),
        v(kBatch * c.keys, kHeads * c.d_value, 3, c.gap),
        dout(kBatch * c.queries, kHeads * c.d_value, 4, c.gap),
        weights(kBatch * kHeads * c.queries, c.keys, 5),
        dropped_weights(weights),
        factor(weights),
        out(kBatch * c.queries, kHeads * c.d_value, 6, c.gap),
        dq(kBatch * c.queries, kHeads * c.d_key, 7, c.gap),
        dk(kBatch * c.keys, kHeads * c.d_key, 8, c.gap),
        dv(kBatch * c.keys, kHeads * c.d_value, 9, c.gap),
        scratch(1, kernels::attention_scratch(c.pass({}), true)),
        dq_before(dq),
        dk_before(dk),
        dv_before(dv) {
    kernels::attention_weights_forward(weights, q, k, scratch.view().data, c.sizes(), c.mask, kScale);
    factor.fill(1);
    if (c.dropout)
      kernels::dropout_factors(factor, Real(0.3), {Random(1, Stream::dropout)}, kHeads * c.queries);
    kernels::mul_forward(dropped_weights, weights, factor);
    Matrix full = weights, drawn = factor;  // of hidden keys, they are undefined
    const kernels::AttentionPass pass = c.pass({full, c.dropout ? drawn.view() : MatrixView{}});
    kernels::attention_forward(out, {q, k, v}, scratch.view().data, pass);
    backward({dv, dq, dk}, pass);
  }
  void backward(kernels::AttentionGradients gradients, const kernels::AttentionPass& pass) {
    kernels::attention_backward(gradients, dout, {q, k, v}, scratch.view().data, pass);
  }
};

void check_attention(const Case& c) {
  CAPTURE(c.queries, c.keys, c.d_key, c.d_value, c.mask.causal, c.mask.lengths.empty(), c.gap, c.dropout);
  const Run run(c);
  const WideMatrix q(run.q), k(run.k), v(run.v), factor(run.factor), scratch(c.queries, c.keys);
  const WideMatrix weights(run.weights), dropped_weights(run.dropped_weights), out(run.out),
      dq(run.dq_before), dk(run.dk_before), dv(run.dv_before);
  reference::attention_weights_forward(weights, q, k, scratch.data, c.sizes(), c.mask, Wide(kScale));
  reference::mul_forward(dropped_weights, weights, factor);
  reference::attention_apply_forward(out, dropped_weights, v, c.sizes());
  reference::attention_backward(dq, dk, dv, WideMatrix(run.dout), q, k, v, weights, dropped_weights, factor,
                                scratch.data, c.sizes(), c.mask, Wide(kScale));
  CHECK(worst_error(run.weights, weights) < kRounding);
  CHECK(worst_error(run.out, out) < kRounding);
  CHECK(worst_error(run.dq, dq) < kRounding);
  CHECK(worst_error(run.dk, dk) < kRounding);
  CHECK(worst_error(run.dv, dv) < kRounding);
  for (const Matrix* m : {&run.weights, &run.out, &run.dq, &run.dk, &run.dv, &run.scratch})
    CHECK(m->intact());
}

}  // namespace

TEST_CASE("attention, forward and backward, at every size and with every mask", "[kernels][slow]") {
  for (const std::int64_t queries : {1, 3, 16, 17, 37}) {
    for (const std::int64_t keys : {1, 3, 16, 17, 37}) {
      const Lengths padded{static_cast<std::int32_t>((keys + 1) / 2), static_cast<std::int32_t>(keys)};
      for (const std::int64_t d_key : {1, 3, 8, 16, 20}) {
        const std::int64_t d_value = d_key == 1 ? 20 : d_key == 20 ? 1 : d_key == 3 ? 8 : d_key == 8 ? 3 : 16;
        check_attention({queries, keys, d_key, d_value, {false, {}}});
        check_attention({queries, keys, d_key, d_value, {true, {}}});
        check_attention({queries, keys, d_key, d_value, {false, padded}});
        check_attention({queries, keys, d_key, d_value, {true, padded}});
        check_attention({queries, keys, d_key, d_value, {true, padded}, 0, false, false});
      }
    }
  }
}

TEST_CASE("attention at every combination of d_key and d_value", "[kernels]") {
  for (const std::int64_t d_key : {1, 3, 8, 16, 20}) {
    for (const std::int64_t d_value : {1, 3, 8, 16, 20})
      check_attention({17, 16, d_key, d_value, {true, {}}});
  }
}

TEST_CASE("attention on blocks of wider matrices", "[kernels]") {
  for (const std::int64_t time : {3, 16, 37}) {
    for (const std::int64_t gap : {1, 40}) check_attention({time, time, 8, 8, {true, {}}, gap});
  }
}

TEST_CASE("attention with dropout of its weights", "[kernels]") {
  const Lengths lengths{16, 9};
  check_attention({17, 16, 8, 3, {false, {}}, 0, true});
  check_attention({17, 16, 3, 8, {true, lengths}, 0, true});
  check_attention({17, 16, 3, 8, {true, lengths}, 0, true, false});
}

TEST_CASE("a query without a visible key gets zeros, and passes none on", "[kernels]") {
  const Lengths lengths{0, 2};
  for (const auto& [causal, softmax] : {std::pair{false, true}, {true, true}, {true, false}}) {
    const Case c{3, 3, 4, 5, {causal, lengths}, 0, false, softmax};
    check_attention(c);
    const Run run(c);
    for (std::int64_t r = 0; r < 3; ++r) {
      for (std::int64_t x = 0; x < 8; ++x) CHECK(run.dq(r, x) == run.dq_before(r, x));
      for (std::int64_t x = 0; x < 10; ++x) CHECK(run.out(r, x) == 0);
    }
  }
}

TEST_CASE("hidden keys have no influence, whatever they hold", "[kernels]") {
  const Lengths lengths{2, 5};
  const Case c{5, 5, 8, 8, {false, lengths}};
  Run run(c);
  const Matrix before = run.weights;
  for (std::int64_t j = 2; j < 5; ++j) {
    for (std::int64_t x = 0; x < 16; ++x) run.k(j, x) = std::numeric_limits<Real>::quiet_NaN();
  }
  kernels::attention_weights_forward(run.weights, run.q, run.k, run.scratch.view().data, c.sizes(), c.mask,
                                     kScale);
  CHECK(worst_error(run.weights, [&](auto r, auto j) { return before(r, j); }) == 0);
}

TEST_CASE("attention's backward skips what is not wanted", "[kernels]") {
  const Case c{5, 7, 8, 4, {}};
  Run run(c);
  const auto again = [&](MatrixView dq, MatrixView dk, MatrixView dv) {
    run.backward({dv, dq, dk}, c.pass({run.weights}));
  };
  Matrix dq = run.dq_before, dk = run.dk_before, dv = run.dv_before;
  again(dq, {}, {});
  again({}, dk, {});
  again({}, {}, dv);
  CHECK(worst_error(dq, [&](auto r, auto x) { return run.dq(r, x); }) == 0);
  CHECK(worst_error(dk, [&](auto r, auto x) { return run.dk(r, x); }) == 0);
  CHECK(worst_error(dv, [&](auto r, auto x) { return run.dv(r, x); }) == 0);
}

TEST_CASE("large scores do not overflow", "[kernels]") {
  const Case c{3, 16, 8, 8, {}};
  Run run(c);
  for (std::int64_t x = 0; x < 16; ++x) {
    for (std::int64_t r = 0; r < 6; ++r) run.q(r, x) = 1000;
    for (std::int64_t r = 0; r < 32; ++r) run.k(r, x) = r % 16 == 5 ? 1000 : -1000;
  }
  kernels::attention_weights_forward(run.weights, run.q, run.k, run.scratch.view().data, c.sizes(), c.mask,
                                     kScale);
  CHECK(worst_error(run.weights, [](auto, auto j) { return j == 5 ? 1 : 0; }) == 0);
}
