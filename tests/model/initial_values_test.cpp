// The initial values of parameters that a model selects.
#include "nn/moments.h"
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
