// Modules against PyTorch: values and the gradients of inputs and parameters.
#include <map>

#include "catch.h"
#include "fixtures_file.h"
#include "thimble/engine/attention.h"
#include "thimble/engine/gru.h"
#include "thimble/engine/modules.h"

using namespace thimble;

namespace {

void check_module(tests::Fixture& fixture, const AttentionConfig& config,
                  Positions positions = Positions::none) {
  const auto lengths = fixture.lengths();
  ParameterStore store;
  const MultiHeadAttention module(store, "module", fixture.shape("x").last(), fixture.integer("heads"),
                                  config, positions);
  fixture.load(store, "", "module.");

  tests::Capture capture;
  AlignedVector<Real> gradients(store.size());
  Tape tape;
  tape.bind(store, gradients);
  const Var x = tape.variable(fixture.tensor("x"));
  const Var out = module(x, lengths, {.hooks = &capture});
  fixture.backward("out", out);
  const Tensor weights = capture.value();
  fixture.compare("weights", weights.shape(), weights.values());
  fixture.compare_value("out", out);
  fixture.compare_gradient("x", x);
  fixture.compare_parameters(store, gradients, "d_", "module.");
  fixture.check_all_used();
}

}  // namespace

TEST_CASE("MultiHeadAttention agrees with PyTorch", "[nn][fixture]") {
  const std::string mask = GENERATE(as<std::string>{}, "none", "causal", "padding", "causal_padding");
  tests::Fixture fixture("mha_" + mask);
  check_module(fixture, {.mask = fixture.integer("causal") != 0 ? Mask::causal : Mask::none});
}

TEST_CASE("heads of every layout and score agree with PyTorch", "[nn][fixture]") {
  const std::string layout = GENERATE(as<std::string>{}, "grouped", "one_key", "tied", "general", "additive",
                                      "rotary", "rotary_halves", "alibi", "alibi_additive");
  const std::map<std::string, Score> scores{{"scaled_dot", Score::scaled_dot},
                                            {"dot", Score::dot},
                                            {"general", Score::general},
                                            {"additive", Score::additive}};
  tests::Fixture fixture("heads_" + layout);
  const std::string positions = fixture.setting("positions");
  check_module(
      fixture,
      {.mask = Mask::causal,
       .score = scores.at(fixture.setting("score")),
       .combine = fixture.integer("summed") != 0 ? Combine::sum : Combine::concat,
       .tie_query_key = fixture.integer("tied") != 0,
       .kv_heads = fixture.integer("kv_heads"),
       .d_key = fixture.integer("key_width"),
       .d_value = fixture.integer("value_width"),
       .rotary = positions == "rotary_halves" ? RotaryConfig{.layout = RotaryPairs::halves, .base = 500}
                                              : RotaryConfig()},
      positions.starts_with("rotary") ? Positions::rotary
      : positions == "alibi"          ? Positions::alibi
                                      : Positions::none);
}

TEST_CASE("cross-attention agrees with PyTorch", "[nn][fixture]") {
  const std::string name = GENERATE(as<std::string>{}, "cross", "cross_padding");
  tests::Fixture fixture(name);
  const auto lengths = fixture.lengths();
  ParameterStore store;
  const MultiHeadAttention module(store, "module", fixture.shape("x").last(), fixture.integer("heads"));
  fixture.load(store, "", "module.");

  tests::Capture capture;
  AlignedVector<Real> gradients(store.size());
  Tape tape;
  tape.bind(store, gradients);
  const Var x = tape.variable(fixture.tensor("x")), memory = tape.variable(fixture.tensor("memory"));
  const Var out = module(x, memory, lengths, {.hooks = &capture});
  fixture.backward("out", out);
  const Tensor weights = capture.value();
  fixture.compare("weights", weights.shape(), weights.values());
  fixture.compare_value("out", out);
  fixture.compare_gradient("x", x);
  fixture.compare_gradient("memory", memory);
  fixture.compare_parameters(store, gradients, "d_", "module.");
  fixture.check_all_used();
}

TEST_CASE("Convolution agrees with PyTorch", "[nn][fixture]") {
  const std::string kind = GENERATE(as<std::string>{}, "centred", "causal", "padding");
  tests::Fixture fixture("convolution_" + kind);
  ParameterStore store;
  const Convolution module(store, "conv", fixture.shape("x").last(), fixture.integer("window"),
                           fixture.integer("causal") != 0);
  fixture.load(store, "", "conv.");
  AlignedVector<Real> gradients(store.size());
  Tape tape;
  tape.bind(store, gradients);
  const Var x = tape.variable(fixture.tensor("x"));
  const Var out = module(x, fixture.lengths());
  fixture.backward("out", out);
  fixture.compare_value("out", out);
  fixture.compare_gradient("x", x);
  fixture.compare_parameters(store, gradients, "d_", "conv.");
  fixture.check_all_used();
}

TEST_CASE("Gru agrees with PyTorch on packed sequences", "[nn][fixture]") {
  const std::string kind = GENERATE(as<std::string>{}, "forward", "both", "forward_padding", "both_padding");
  tests::Fixture fixture("gru_" + kind);
  const auto lengths = fixture.lengths();
  ParameterStore store;
  const Gru module(store, "gru", fixture.shape("x").last(), fixture.integer("hidden"),
                   kind.starts_with("both"));
  fixture.load(store, "", "gru.");
  AlignedVector<Real> gradients(store.size());
  Tape tape;
  tape.bind(store, gradients);
  const Var x = tape.variable(fixture.tensor("x"));
  const GruStates out = module(x, lengths);
  fixture.backward("states", out.all);
  fixture.backward("last", out.last);
  Tensor states(out.all.shape(), tests::elements(out.all.value()));
  const std::int64_t time = states.shape()[1];
  for (std::int64_t row = 0; row < states.matrix().rows; ++row) {  // PyTorch leaves 0 after the end
    if (!lengths.empty() && row % time >= lengths[static_cast<std::size_t>(row / time)])
      std::fill_n(states.matrix().row(row), states.matrix().cols, Real{0});
  }
  fixture.compare("states", states.shape(), states.values());
  fixture.compare_value("last", out.last);
  fixture.compare_gradient("x", x);
  fixture.compare_parameters(store, gradients, "d_", "gru.");
  fixture.check_all_used();
}
