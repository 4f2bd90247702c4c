// Backward kernels overwrite an uninitialized gradient, with the result of adding to zeros.
#include <functional>
#include <vector>

#include "catch.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/attention/head_norm.h"
#include "engine/kernels/cross_entropy.h"
#include "engine/kernels/dropout.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/gelu.h"
#include "engine/kernels/gru.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/pool.h"
#include "engine/kernels/products/linear.h"
#include "engine/kernels/softmax.h"
#include "engine/kernels/unfold.h"

using namespace thimble;

namespace {

// Returns whether kernel(dx) has the same result for zeros and for an uninitialized gradient of this size.
bool overwrites(std::int64_t rows, std::int64_t cols, const std::function<void(GradientView)>& kernel) {
  Matrix zeros(rows, cols), empty(rows, cols);
  empty.fill(kNaN);
  kernel(zeros.view());
  kernel({empty.view(), true});
  return worst_error(empty, [&](auto r, auto c) { return zeros(r, c); }) == 0 && empty.intact();
}

}  // namespace

TEST_CASE("every backward kernel overwrites an empty sum", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    CAPTURE(n);
    const Matrix dy(6, n, 1), saved(6, n, 2), row(1, n, 3), square(n, n, 4), norms(6, 2, 5);
    CHECK(overwrites(6, n, [&](GradientView dx) { kernels::accumulate(dx, dy); }));
    CHECK(overwrites(6, n, [&](GradientView dx) { kernels::scale_backward(dx, dy, 3); }));
    CHECK(overwrites(6, n, [&](GradientView dx) { kernels::relu_backward(dx, dy, saved); }));
    CHECK(overwrites(6, n, [&](GradientView dx) { kernels::tanh_backward(dx, dy, saved); }));
    CHECK(overwrites(6, n, [&](GradientView da) { kernels::mul_backward(da, dy, saved); }));
    CHECK(overwrites(6, n, [&](GradientView dx) { kernels::softmax_backward(dx, dy, saved); }));
    CHECK(overwrites(
        6, n, [&](GradientView dx) { kernels::layer_norm_backward(dx, {}, {}, dy, saved, row, norms); }));
    CHECK(overwrites(6, n,
                     [&](GradientView dx) { kernels::rms_norm_backward(dx, {}, dy, saved, row, norms); }));
    CHECK(overwrites(6, n, [&](GradientView dx) { kernels::head_norm_backward(dx, dy, saved, norms, 1); }));
    CHECK(overwrites(6, n,
                     [&](GradientView dx) { kernels::linear_backward(dx, {}, {}, dy, saved, square, {}); }));
    CHECK(overwrites(n, n,
                     [&](GradientView dw) { kernels::linear_backward({}, dw, {}, dy, saved, square, {}); }));
    const std::vector<std::int32_t> lengths{2, 0};
    const Matrix window(6, 3 * n, 8);
    CHECK(overwrites(6, n, [&](GradientView dx) {
      kernels::unfold_backward(dx, window, {.time = 3, .window = 3, .before = 1, .lengths = lengths});
    }));
    const Matrix gates(6, 3 * n, 9), state(6, n, 10);
    const std::vector<std::int32_t> ends{3, 1, 2, 0, 5, 1};
    CHECK(overwrites(6, 3 * n, [&](GradientView da) {
      kernels::gru_cell_backward(da, {}, {}, dy, gates, state, gates, {ends, 1});
    }));
    CHECK(overwrites(6, 3 * n, [&](GradientView db) {
      kernels::gru_cell_backward({}, db, {}, dy, gates, state, gates, {ends, 1});
    }));
    CHECK(overwrites(6, n, [&](GradientView dh) {
      kernels::gru_cell_backward({}, {}, dh, dy, gates, state, gates, {ends, 1});
    }));
    const Matrix pooled(2, n, 6), weights(2, 3, 7);
    CHECK(overwrites(6, n, [&](GradientView dx) { kernels::pool_backward(dx, pooled, weights); }));
  }
}

TEST_CASE("attention's backward overwrites empty sums, blocks of one projection as well", "[kernels]") {
  constexpr std::int64_t kBatch = 2, kTime = 5, kHeads = 2, kDepth = 3, kWidth = kHeads * kDepth;
  const AttentionSizes sizes{.heads = kHeads,
                             .kv_heads = kHeads,
                             .d_key = kDepth,
                             .d_value = kDepth,
                             .batch = kBatch,
                             .queries = kTime,
                             .keys = kTime};
  const Matrix qkv(kBatch * kTime, 3 * kWidth, 1), dout(kBatch * kTime, kWidth, 2);
  Matrix weights(kBatch * kHeads * kTime, kTime, 3);
  const std::vector<std::int32_t> lengths{5, 3};  // gradients of padding are initialized, too
  const kernels::AttentionPass kept{.sizes = sizes, .scale = Real(0.5), .kept = {weights}},
      in_blocks{.sizes = sizes, .mask = {.lengths = lengths}, .kept = {weights}, .block = 2},
      not_kept{.sizes = sizes, .mask = {.lengths = lengths}, .scale = Real(0.5), .keeps = false};
  for (const kernels::AttentionPass& pass : {kept, in_blocks, not_kept}) {
    std::vector<Real> scratch(static_cast<std::size_t>(kernels::attention_scratch(pass, true)));
    CHECK(overwrites(kBatch * kTime, 3 * kWidth, [&](GradientView dqkv) {
      const auto block = [](auto view, int i) { return view.column_block(i * kWidth, kWidth); };
      kernels::attention_backward({block(dqkv, 2), block(dqkv, 0), block(dqkv, 1)}, dout,
                                  {block(qkv.view(), 0), block(qkv.view(), 1), block(qkv.view(), 2)},
                                  scratch.data(), pass);
    }));
  }
}

TEST_CASE("the gradient of given scores is added, or overwrites an empty sum", "[kernels]") {
  constexpr std::int64_t kBatch = 2, kTime = 5, kHeads = 2, kWidth = 3, kRows = kBatch * kHeads * kTime;
  const Matrix v(kBatch * kTime, kHeads * kWidth, 1), dout(kBatch * kTime, kHeads * kWidth, 2);
  const Matrix before(kRows, kTime, 4);
  Matrix weights(kRows, kTime, 3);
  std::vector<Real> scratch(static_cast<std::size_t>(kWidth * kTime + kTime * kTime));
  const AttentionSizes sizes{.heads = kHeads,
                             .kv_heads = kHeads,
                             .d_key = 0,
                             .d_value = kWidth,
                             .batch = kBatch,
                             .queries = kTime,
                             .keys = kTime};
  const auto kernel = [&](GradientView dscores) {
    kernels::attention_backward({{}, {}, {}, dscores}, dout, {{}, {}, v}, scratch.data(),
                                {.sizes = sizes, .kept = {weights}, .block = 0});
  };
  CHECK(overwrites(kRows, kTime, kernel));
  Matrix alone(kRows, kTime), sum = before;
  kernel(alone);
  kernel(sum);
  CHECK(worst_error(sum, [&](auto r, auto c) { return alone(r, c) + before(r, c); }) == 0);
}
