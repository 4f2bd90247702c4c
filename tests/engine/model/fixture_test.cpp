// Encoder layers against PyTorch: values and the gradients of inputs and parameters.
#include "catch.h"
#include "engine/model/transformer.h"
#include "fixtures_file.h"

using namespace thimble;

namespace {

void check_layer(const std::string& file, ModelConfig config) {
  tests::Fixture fixture(file);
  config.d_model = fixture.shape("x").last();
  config.heads = fixture.integer("heads");
  config.d_ff = fixture.shape("linear1.bias").last();
  ParameterStore store;
  const EncoderLayer layer(store, "layer", 0, config, 0);
  fixture.load(store, "", "layer.");

  AlignedVector<Real> gradients(store.size());
  Tape tape;
  tape.bind(store, gradients);
  const Var x = tape.variable(fixture.tensor("x"));
  const Var out = layer(x, {}, {});
  fixture.backward("out", out);
  fixture.compare_value("out", out);
  fixture.compare_gradient("x", x);
  fixture.compare_parameters(store, gradients, "d_", "layer.");
  fixture.check_all_used();
}

}  // namespace

TEST_CASE("a pre-norm and a post-norm encoder layer agree with PyTorch", "[model][fixture]") {
  check_layer("encoder_layer_pre", {.norm = NormOrder::pre, .activation = Activation::gelu});
  check_layer("encoder_layer_post", {.norm = NormOrder::post, .activation = Activation::relu});
}

TEST_CASE("gated encoder layers with RMS norm agree with PyTorch", "[model][fixture]") {
  for (const NormOrder norm : {NormOrder::pre, NormOrder::post}) {
    check_layer(norm == NormOrder::pre ? "gated_layer_pre" : "gated_layer_post",
                {.norm = norm, .norm_type = NormType::rms, .activation = Activation::silu, .gated = true});
  }
}
