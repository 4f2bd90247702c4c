// The distributions of the initial values of every module.
#include <algorithm>
#include <cmath>
#include <string>

#include "engine/nn/moments.h"
#include "thimble/engine/attention.h"
#include "thimble/engine/gru.h"

using namespace thimble;

TEST_CASE("linear maps and convolutions start uniform within one over the root of their inputs", "[nn]") {
  ParameterStore store;
  const Linear linear(store, "linear", 25, 400);
  const Convolution convolution(store, "convolution", 20, 5, false);
  linear.init(store, 1);
  convolution.init(store, 1);
  expect_uniform(store, linear.weight, 0.2);
  expect_uniform(store, *linear.bias, 0.2);
  expect_uniform(store, convolution.weight, 0.1);
  CHECK(moments_of(store, *convolution.bias).largest <= 0.1);
  CHECK(moments_of(store, *convolution.bias).largest > 0.05);
}

TEST_CASE("norms start as the identity, embeddings normal with their standard deviation", "[nn]") {
  ParameterStore store;
  const LayerNorm layer(store, "layer", 9);
  const RmsNorm rms(store, "rms", 9);
  const Embedding embedding(store, "embedding", 300, 20);
  std::ranges::fill(store.values(), Real(7));
  layer.init(store);
  rms.init(store);
  embedding.init(store, 1, 0.25);
  expect_constant(store, *layer.weight, 1);
  expect_constant(store, *layer.bias, 0);
  expect_constant(store, *rms.weight, 1);
  expect_normal(store, embedding.weight, 0.25);
}

TEST_CASE("recurrent units start uniform within one over the root of their state", "[nn]") {
  ParameterStore store;
  const GruCell cell(store, "cell", "", 9, 100);
  cell.init(store, 1);
  for (const Parameter p : {cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh})
    expect_uniform(store, p, 0.1);
}

// 20 channels, heads that do not fill them: 4 heads with 6 columns of keys and 9 of values.
TEST_CASE("attention starts by Glorot and Bengio, its output by the columns that it reads", "[nn]") {
  for (const bool summed : {false, true}) {
    for (const bool tied : {false, true}) {
      CAPTURE(summed, tied);
      ParameterStore store;
      const MultiHeadAttention attention(store, "attention", 20, 4,
                                         {.score = Score::general,
                                          .combine = summed ? Combine::sum : Combine::concat,
                                          .tie_query_key = tied,
                                          .d_key = 6,
                                          .d_value = 9});
      std::ranges::fill(store.values(), Real(7));
      attention.init(store, 1);
      const double rows = (tied ? 1 : 2) * 4 * 6 + 4 * 9;
      expect_uniform(store, attention.in_proj_weight, std::sqrt(6 / (rows + 20)));
      CHECK(attention.out_proj_weights.size() == (summed ? 4 : 1));
      for (const Parameter p : attention.out_proj_weights) expect_uniform(store, p, 1 / std::sqrt(4.0 * 9));
      expect_uniform(store, *attention.score_weight, 1 / std::sqrt(6.0));
      expect_constant(store, *attention.in_proj_bias, 0);
      expect_constant(store, *attention.out_proj_bias, 0);
    }
  }
}

TEST_CASE("attention starts normal with in_proj_std, if that is given", "[nn]") {
  ParameterStore store;
  const MultiHeadAttention attention(store, "attention", 20, 4, {.in_proj_std = 0.35});
  attention.init(store, 1);
  expect_normal(store, attention.in_proj_weight, 0.35);
  expect_uniform(store, attention.out_proj_weights[0], 1 / std::sqrt(20.0));
}

TEST_CASE("parameters and seeds have random numbers of their own", "[nn]") {
  ParameterStore store, again, other;
  for (ParameterStore* s : {&store, &again, &other}) {
    const Linear first(*s, "first", 8, 8), second(*s, "second", 8, 8);
    first.init(*s, s == &other ? 2 : 1);
    second.init(*s, s == &other ? 2 : 1);
  }
  CHECK(again.hash() == store.hash());
  CHECK(other.hash() != store.hash());
  CHECK_FALSE(std::ranges::equal(store.values(Parameter{0}), store.values(Parameter{2})));
}

TEST_CASE("heads divide the channels, each of the two widths that is not given", "[nn]") {
  ParameterStore store;
  const MultiHeadAttention keys(store, "keys", 20, 4, {.d_key = 6});
  CHECK(keys.sizes.d_key == 6);
  CHECK(keys.sizes.d_value == 5);
  const MultiHeadAttention values(store, "values", 20, 4, {.d_value = 6});
  CHECK(values.sizes.d_key == 5);
  CHECK(values.sizes.d_value == 6);
}
