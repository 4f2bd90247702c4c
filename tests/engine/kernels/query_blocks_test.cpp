// Attention in blocks of queries, with weights that are kept and computed again, against its steps on whole heads: the
// results are equal, not just close.
#include "engine/kernels/attention/attention_steps.h"

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
  kernels::AttentionPass pass(bool keeps, const kernels::KeptWeights& kept, std::int64_t block) const {
    kernels::AttentionPass pass{.sizes = sizes(), .mask = mask, .scale = kScale, .dropout = kDropout};
    if (dropout) pass.key = kernels::DropoutKey{Random(1, Stream::dropout), 2, 3, 4};
    pass.keeps = keeps;
    pass.kept = kept;
    pass.block = block;
    return pass;
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

Results in_steps(const Case& c, const Inputs& x) {
  Results r(c);
  const std::int64_t rows = kBatch * c.heads * c.queries;
  Matrix weights(rows, c.keys), factors(rows, c.keys);
  Matrix scratch(1, (c.d_key + c.d_value + c.queries) * c.keys);
  kernels::attention_weights_forward(weights, x.q, x.k, scratch.view().data, c.sizes(), c.mask, kScale);
  Matrix applied = weights;
  kernels::AttentionPass pass = c.pass(true, {weights, {}, applied}, 0);
  if (c.dropout) {
    kernels::dropout_factors(factors, kDropout, *pass.key, c.heads * c.queries);
    kernels::mul_forward(applied, weights, factors);
    pass.kept.dropout = factors;
  }
  kernels::attention_apply_forward(r.out, applied, x.v, c.sizes());
  kernels::attention_backward({r.dv, r.dq, r.dk}, x.dout, {x.q, x.k, x.v}, scratch.view().data, pass);
  return r;
}

Results in_blocks(const Case& c, const Inputs& x, bool keeps, std::int64_t block = kernels::kQueryBlock) {
  Results r(c);
  const std::int64_t rows = kBatch * c.heads * c.queries;
  Matrix weights(rows, c.keys), factors(rows, c.keys);
  weights.fill(kNaN);  // a backward pass reads only what the forward pass wrote
  factors.fill(kNaN);
  kernels::KeptWeights kept;
  if (keeps) kept = {weights, c.dropout ? factors.view() : MatrixView{}};
  const kernels::AttentionPass pass = c.pass(keeps, kept, block);
  Matrix forward(1, kernels::attention_scratch(pass, false)),
      backward(1, kernels::attention_scratch(pass, true));
  kernels::attention_forward(r.out, {x.q, x.k, x.v}, forward.view().data, pass);
  kernels::attention_backward({r.dv, r.dq, r.dk}, x.dout, {x.q, x.k, x.v}, backward.view().data, pass);
  for (const Matrix* m : {&r.out, &r.dq, &r.dk, &r.dv, &forward, &backward, &weights, &factors})
    CHECK(m->intact());
  return r;
}

bool equal(const Matrix& a, const Matrix& b) {
  return worst_error(a, [&](auto r, auto c) { return b(r, c); }) == 0;
}

void check_equal(const Case& c) {
  CAPTURE(c.queries, c.keys, c.mask.causal, c.mask.lengths.size(), c.mask.first_query, c.mask.slopes.size(),
          c.dropout, c.softmax, c.kv_heads, c.d_key, c.d_value);
  const Inputs inputs(c);
  const Results a = in_steps(c, inputs);
  for (const Results& b :
       {in_blocks(c, inputs, false), in_blocks(c, inputs, true), in_blocks(c, inputs, true, c.queries)}) {
    CHECK(equal(a.out, b.out));
    CHECK(equal(a.dq, b.dq));
    CHECK(equal(a.dk, b.dk));
    CHECK(equal(a.dv, b.dv));
  }
}

}  // namespace

// Blocks have 32 queries.
TEST_CASE("attention in blocks equals its steps around the borders of blocks, for every target",
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

TEST_CASE("attention in blocks equals its steps, whatever the heads", "[kernels]") {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    for (const std::int64_t d_key : {1, 8, 20}) {
      for (const std::int64_t d_value : {1, 16, 17})
        check_equal({40, 40, {.causal = true, .lengths = {}}, true, true, 4, kv_heads, d_key, d_value});
    }
  }
}

TEST_CASE("attention in blocks: a sequence without keys gets zeros, and passes none on", "[kernels]") {
  const Lengths lengths{0, 40};
  for (const auto& [causal, softmax] : {std::pair{false, true}, {true, true}, {true, false}}) {
    const Case c{40, 40, {.causal = causal, .lengths = lengths}, true, softmax};
    check_equal(c);
    const Results results = in_blocks(c, Inputs(c), false), before(c);
    for (std::int64_t r = 0; r < 40; ++r) {
      for (std::int64_t x = 0; x < results.out.cols(); ++x) CHECK(results.out(r, x) == 0);
      for (std::int64_t x = 0; x < results.dq.cols(); ++x) CHECK(results.dq(r, x) == before.dq(r, x));
    }
  }
}

TEST_CASE("attention in blocks skips gradients that are not required", "[kernels]") {
  const Case c{40, 40, {.causal = true, .lengths = {}}, true};
  const Inputs x(c);
  const Results all = in_blocks(c, x, false);
  Results single(c);
  const kernels::AttentionPass pass = c.pass(false, {}, kernels::kQueryBlock);
  Matrix scratch(1, kernels::attention_scratch(pass, true));
  const auto backward = [&](GradientView dq, GradientView dk, GradientView dv) {
    kernels::attention_backward({dv, dq, dk}, x.dout, {x.q, x.k, x.v}, scratch.view().data, pass);
  };
  backward(single.dq, {}, {});
  backward({}, single.dk, {});
  backward({}, {}, single.dv);
  CHECK(equal(single.dq, all.dq));
  CHECK(equal(single.dk, all.dk));
  CHECK(equal(single.dv, all.dv));
}

TEST_CASE("a causal mask and padding leave out blocks of scores", "[kernels]") {
  const auto scores = [](const Case& c) {
    return kernels::attention_score_count(c.pass(true, {}, kernels::kQueryBlock));
  };
  CHECK(scores({64, 64}) == kBatch * 4 * 64 * 64);
  CHECK(scores({64, 64, {.causal = true, .lengths = {}}}) == kBatch * 4 * 32 * (32 + 64));
  const Lengths lengths{0, 40};
  CHECK(scores({64, 64, {.causal = true, .lengths = lengths}}) == 4 * 32 * (32 + 40));
}
