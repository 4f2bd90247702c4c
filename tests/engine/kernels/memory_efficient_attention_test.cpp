// Attention that keeps no weights against the kernels that keep them: the results are equal, not just close.
#include "engine/kernels/attention/memory_efficient_attention.h"

#include <hwy/targets.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "catch.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/matrix.h"

using namespace thimble;

namespace {

constexpr std::int64_t kBatch = 2;
constexpr Real kScale = Real(0.4), kDropout = Real(0.3);

using Lengths = std::vector<std::int32_t>;

struct Case {
  std::int64_t queries, keys;
  kernels::AttentionMask mask = {};
  bool dropout = false, softmax = true;
  std::int64_t heads = 4, kv_heads = 2, d_key = 3, d_value = 5;

  AttentionSizes sizes() const {
    return {.heads = heads,
            .kv_heads = kv_heads,
            .d_key = d_key,
            .d_value = d_value,
            .softmax = softmax,
            .batch = kBatch,
            .queries = queries,
            .keys = keys};
  }
  kernels::WeightsDropout weights_dropout() const {
    const kernels::DropoutKey key{Random(1, Stream::dropout), 2, 3, 4};
    return {kDropout, dropout ? std::optional(key) : std::nullopt};
  }
};

struct Inputs {
  Matrix q, k, v, dout;

  explicit Inputs(const Case& c)
      : q(kBatch * c.queries, c.heads * c.d_key, 1, 2),
        k(kBatch * c.keys, c.kv_heads * c.d_key, 2, 2),
        v(kBatch * c.keys, c.kv_heads * c.d_value, 3, 2),
        dout(kBatch * c.queries, c.heads * c.d_value, 4) {}
};

// The results, of gradients to which a pass adds.
struct Results {
  Matrix out, dq, dk, dv;

  explicit Results(const Case& c)
      : out(kBatch * c.queries, c.heads * c.d_value, 5, 1),
        dq(kBatch * c.queries, c.heads * c.d_key, 6, 1),
        dk(kBatch * c.keys, c.kv_heads * c.d_key, 7, 1),
        dv(kBatch * c.keys, c.kv_heads * c.d_value, 8, 1) {}
};

Results with_weights(const Case& c, const Inputs& x) {
  Results r(c);
  const std::int64_t rows = kBatch * c.heads * c.queries;
  Matrix weights(rows, c.keys), factors(rows, c.keys);
  Matrix scratch(1, std::max(c.d_key, c.d_value) * c.keys + c.queries * c.keys);
  kernels::attention_weights_forward(weights, x.q, x.k, scratch.view().data, c.sizes(), c.mask, kScale);
  Matrix dropped = weights;
  if (c.dropout) {
    kernels::dropout_factors(factors, kDropout, *c.weights_dropout().key, c.heads * c.queries);
    kernels::mul_forward(dropped, weights, factors);
  }
  kernels::attention_apply_forward(r.out, dropped, x.v, c.sizes());
  kernels::attention_backward({r.dv, r.dq, r.dk}, x.dout, {x.q, x.k, x.v},
                              {weights, dropped, c.dropout ? factors.view() : MatrixView{}},
                              scratch.view().data, c.sizes(), c.mask, kScale);
  return r;
}

Results without_weights(const Case& c, const Inputs& x) {
  Results r(c);
  const AttentionSizes sizes = c.sizes();
  Matrix forward(1, kernels::memory_efficient_scratch(sizes, false, c.dropout)),
      backward(1, kernels::memory_efficient_scratch(sizes, true, c.dropout));
  kernels::memory_efficient_forward(r.out, x.q, x.k, x.v, forward.view().data, sizes, c.mask, kScale,
                                    c.weights_dropout());
  kernels::memory_efficient_backward({r.dv, r.dq, r.dk}, x.dout, {x.q, x.k, x.v}, backward.view().data, sizes,
                                     c.mask, kScale, c.weights_dropout());
  for (const Matrix* m : {&r.out, &r.dq, &r.dk, &r.dv, &forward, &backward}) CHECK(m->intact());
  return r;
}

bool equal(const Matrix& a, const Matrix& b) {
  return worst_error(a, [&](auto r, auto c) { return b(r, c); }) == 0;
}

void check_equal(const Case& c) {
  CAPTURE(c.queries, c.keys, c.mask.causal, c.mask.lengths.size(), c.mask.first_query, c.mask.slopes.size(),
          c.dropout, c.softmax, c.kv_heads, c.d_key, c.d_value);
  const Inputs inputs(c);
  const Results a = with_weights(c, inputs), b = without_weights(c, inputs);
  CHECK(equal(a.out, b.out));
  CHECK(equal(a.dq, b.dq));
  CHECK(equal(a.dk, b.dk));
  CHECK(equal(a.dv, b.dv));
}

}  // namespace

// Blocks have 32 queries.
TEST_CASE("attention without weights equals attention around the borders of blocks, for every target",
          "[kernels][slow]") {
  const Lengths lengths{33, 20};
  const std::vector<Real> slopes{Real(0.5), Real(0.1), Real(0), Real(0.2)};
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::GetChosenTarget().Update(target);
    CAPTURE(hwy::TargetName(target));
    for (const std::int64_t queries : {1, 31, 32, 33, 64, 65, 100}) {
      for (const std::int64_t keys : {33, 64, 100}) check_equal({queries, keys});
      check_equal({queries, queries, {.causal = true, .lengths = {}}});
      check_equal({queries, 100, {.causal = true, .lengths = lengths, .first_query = 100 - queries}});
      check_equal({queries, 65, {.lengths = lengths, .first_query = 7, .slopes = slopes}});
      check_equal({queries, 70, {.causal = true, .lengths = lengths, .slopes = slopes}, true});
      check_equal({queries, 37, {.lengths = {}}, true});
      check_equal({queries, 50, {.causal = true, .lengths = lengths}, true, false});
    }
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST_CASE("attention without weights equals attention, whatever the heads", "[kernels]") {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    for (const std::int64_t d_key : {1, 8, 20}) {
      for (const std::int64_t d_value : {1, 16, 17})
        check_equal({40, 40, {.causal = true, .lengths = {}}, true, true, 4, kv_heads, d_key, d_value});
    }
  }
}

TEST_CASE("attention without weights: a sequence without keys gets zeros, and passes none on", "[kernels]") {
  const Lengths lengths{0, 40};
  for (const auto& [causal, softmax] : {std::pair{false, true}, {true, true}, {true, false}}) {
    const Case c{40, 40, {.causal = causal, .lengths = lengths}, true, softmax};
    check_equal(c);
    const Results results = without_weights(c, Inputs(c)), before(c);
    for (std::int64_t r = 0; r < 40; ++r) {
      for (std::int64_t x = 0; x < results.out.cols(); ++x) CHECK(results.out(r, x) == 0);
      for (std::int64_t x = 0; x < results.dq.cols(); ++x) CHECK(results.dq(r, x) == before.dq(r, x));
    }
  }
}

TEST_CASE("attention without weights skips gradients that are not required", "[kernels]") {
  const Case c{40, 40, {.causal = true, .lengths = {}}, true};
  const Inputs x(c);
  const Results all = without_weights(c, x);
  Results single(c);
  Matrix scratch(1, kernels::memory_efficient_scratch(c.sizes(), true, true));
  const auto backward = [&](GradientView dq, GradientView dk, GradientView dv) {
    kernels::memory_efficient_backward({dv, dq, dk}, x.dout, {x.q, x.k, x.v}, scratch.view().data, c.sizes(),
                                       c.mask, kScale, c.weights_dropout());
  };
  backward(single.dq, {}, {});
  backward({}, single.dk, {});
  backward({}, {}, single.dv);
  CHECK(equal(single.dq, all.dq));
  CHECK(equal(single.dk, all.dk));
  CHECK(equal(single.dv, all.dv));
}

TEST_CASE("a causal mask and padding leave out blocks of scores", "[kernels]") {
  const auto scores = [](const Case& c) { return kernels::memory_efficient_scores(c.sizes(), c.mask); };
  CHECK(scores({64, 64}) == kBatch * 4 * 64 * 64);
  CHECK(scores({64, 64, {.causal = true, .lengths = {}}}) == kBatch * 4 * 32 * (32 + 64));
  const Lengths lengths{0, 40};
  CHECK(scores({64, 64, {.causal = true, .lengths = lengths}}) == 4 * 32 * (32 + 40));
}
