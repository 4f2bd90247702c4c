// Modules against PyTorch: values and the gradients of inputs and parameters.
#include "catch.h"
#include "fixtures_file.h"
#include "thimble/nn/modules.h"

using namespace thimble;

TEST_CASE("MultiHeadAttention agrees with PyTorch", "[nn][fixture]") {
  const std::string mask = GENERATE(as<std::string>{}, "none", "causal", "padding", "causal_padding");
  tests::Fixture fixture("mha_" + mask);
  const auto lengths = fixture.lengths();
  ParameterStore store;
  const MultiHeadAttention module(store, "module", fixture.shape("x").last(), fixture.integer("heads"),
                                  fixture.integer("causal") != 0, {});
  fixture.load(store, "", "module.");

  tests::Capture capture;
  AlignedVector<Real> gradients(store.size());
  Tape tape;
  tape.bind(store, gradients);
  const Var x = tape.variable(fixture.tensor("x"));
  const Var out = module(x, lengths, {.hooks = &capture});
  fixture.backward("out", out);
  const Tensor weights = capture.value("module.weights");
  fixture.compare("weights", weights.shape(), weights.values());
  fixture.compare_value("out", out);
  fixture.compare_gradient("x", x);
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
