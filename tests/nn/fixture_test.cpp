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
