// The initial values of parameters that a model selects.
#include "engine/nn/moments.h"
#include "thimble/engine/make_model.h"

using namespace thimble;

namespace {

Parameter parameter(const ParameterStore& store, std::string_view name) {
  const auto found = std::ranges::find(store.entries(), name, &ParameterStore::Entry::name);
  REQUIRE(found != store.entries().end());
  return {static_cast<int>(found - store.entries().begin())};
}

}  // namespace

TEST_CASE("tokens and learned positions start with standard deviations of their own", "[model]") {
  const auto model = make_model({.d_model = 16,
                                 .heads = 2,
                                 .positions = Positions::learned,
                                 .embedding_std = 0.5,
                                 .position_std = 0.01},
                                ModelSizes{.vocabulary = 300, .length = 200});
  model->init(1);
  const ParameterStore& store = model->parameters();
  expect_normal(store, parameter(store, "token_embedding.weight"), 0.5);
  expect_normal(store, parameter(store, "position_embedding.weight"), 0.01);
}

TEST_CASE("all matrices start with one standard deviation, those into the residual stream with less",
          "[model]") {
  for (const bool scaled : {false, true}) {
    CAPTURE(scaled);
    const auto model = make_model({.d_model = 32,
                                   .heads = 2,
                                   .layers = 2,
                                   .d_ff = 64,
                                   .norm = NormOrder::pre,
                                   .positions = Positions::learned,
                                   .init_std = 0.05,
                                   .init_scaled = scaled,
                                   .output = {.tied = true}},
                                  ModelSizes{.vocabulary = 100, .length = 100});
    std::ranges::fill(model->parameters().values(), Real(7));
    model->init(1);
    const ParameterStore& store = model->parameters();
    for (const char* name : {"token_embedding.weight", "position_embedding.weight",
                             "encoder.layers.1.self_attn.in_proj_weight", "encoder.layers.1.linear1.weight"})
      expect_normal(store, parameter(store, name), 0.05);
    for (const char* name : {"encoder.layers.1.self_attn.out_proj.weight", "encoder.layers.1.linear2.weight"})
      expect_normal(store, parameter(store, name), scaled ? 0.025 : 0.05);
    for (const char* name : {"encoder.layers.1.linear1.bias", "encoder.layers.1.self_attn.in_proj_bias",
                             "encoder.layers.1.norm1.bias", "output.bias"})
      expect_constant(store, parameter(store, name), 0);
    expect_constant(store, parameter(store, "encoder.layers.1.norm1.weight"), 1);
    CHECK(std::ranges::find(store.entries(), "output.weight", &ParameterStore::Entry::name) ==
          store.entries().end());
  }
}

TEST_CASE("the scores of a recurrent model start uniform within one over the root of d_model", "[model]") {
  const auto model = make_model({.kind = ModelKind::recurrent,
                                 .d_model = 100,
                                 .attention = {.score = Score::additive},
                                 .output = {.per = OutputPer::next}},
                                ModelSizes{.vocabulary = 7, .length = 4, .source_length = 8});
  model->init(1);
  const ParameterStore& store = model->parameters();
  expect_uniform(store, parameter(store, "decoder.attention.score_weight"), 0.1);
}

TEST_CASE("the gate of a feed-forward net starts as a linear map", "[model]") {
  const auto model = make_model({.d_model = 16, .heads = 2, .d_ff = 40, .gated = true},
                                ModelSizes{.vocabulary = 7, .length = 4});
  model->init(1);
  const ParameterStore& store = model->parameters();
  expect_uniform(store, parameter(store, "encoder.layers.0.gate.weight"), 0.25);
}
