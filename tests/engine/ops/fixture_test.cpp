// Ops against PyTorch: values and gradients.
#include "catch.h"
#include "fixtures_file.h"
#include "thimble/engine/ops.h"

using namespace thimble;
using tests::Fixture;

namespace {

void check_unary(const std::string& file, Var (*op)(Var)) {
  Fixture fixture(file);
  Tape tape;
  const Var x = tape.variable(fixture.tensor("x"));
  const Var y = op(x);
  fixture.backward("y", y);
  fixture.compare_value("y", y);
  fixture.compare_gradient("x", x);
  fixture.check_all_used();
}

}  // namespace

TEST_CASE("attention agrees with PyTorch", "[ops][fixture]") {
  const std::string mask = GENERATE(as<std::string>{}, "none", "causal", "padding", "causal_padding");
  Fixture fixture("attention_" + mask);
  const auto lengths = fixture.lengths();
  tests::Capture capture;
  AttentionOptions options;
  options.heads = options.kv_heads = fixture.integer("heads");
  options.mask = {fixture.integer("causal") != 0, lengths};
  options.hooks = &capture;

  Tape tape;
  const Var q = tape.variable(fixture.tensor("q"));
  const Var k = tape.variable(fixture.tensor("k"));
  const Var v = tape.variable(fixture.tensor("v"));
  const Var out = attention(q, k, v, options);
  fixture.backward("out", out);
  fixture.compare("weights", capture.value().shape(), capture.value().values());
  fixture.compare_value("out", out);
  fixture.compare_gradient("q", q);
  fixture.compare_gradient("k", k);
  fixture.compare_gradient("v", v);
  fixture.check_all_used();
}

TEST_CASE("head_linear agrees with PyTorch", "[ops][fixture]") {
  Fixture fixture("head_linear");
  Tape tape;
  const Var x = tape.variable(fixture.tensor("x"));
  const Var weight = tape.variable(fixture.tensor("weight"));
  const Var y = head_linear(x, weight, fixture.integer("heads"));
  fixture.backward("y", y);
  fixture.compare_value("y", y);
  fixture.compare_gradient("x", x);
  fixture.compare_gradient("weight", weight);
  fixture.check_all_used();
}

TEST_CASE("additive_score agrees with PyTorch and NumPy", "[ops][fixture]") {
  Fixture fixture("additive_score");
  Tape tape;
  const Var q = tape.variable(fixture.tensor("q"));
  const Var k = tape.variable(fixture.tensor("k"));
  const Var weight = tape.variable(fixture.tensor("weight"));
  const Var scores = additive_score(q, k, weight, fixture.integer("heads"), fixture.integer("kv_heads"));
  fixture.backward("scores", scores);
  fixture.compare_value("scores", scores);
  fixture.compare_gradient("q", q);
  fixture.compare_gradient("k", k);
  fixture.compare_gradient("weight", weight);
  fixture.check_all_used();
}

TEST_CASE("rotary agrees with PyTorch", "[ops][fixture]") {
  Fixture fixture("rotary");
  const auto setting = [&](const char* key) { return fixture.integer(key); };
  Tape tape;
  const Var x = tape.variable(fixture.tensor("x"));
  const Var y = rotary(x, setting("first"), setting("count"), setting("depth"), setting("first_position"));
  fixture.backward("y", y);
  fixture.compare_value("y", y);
  fixture.compare_gradient("x", x);
  fixture.check_all_used();
}

TEST_CASE("layer_norm agrees with PyTorch", "[ops][fixture]") {
  Fixture fixture("layer_norm");
  Tape tape;
  const Var x = tape.variable(fixture.tensor("x"));
  const Var weight = tape.variable(fixture.tensor("weight"));
  const Var bias = tape.variable(fixture.tensor("bias"));
  const Var y = layer_norm(x, weight, bias, static_cast<Real>(fixture.number("eps")));
  fixture.backward("y", y);
  fixture.compare_value("y", y);
  fixture.compare_gradient("x", x);
  fixture.compare_gradient("weight", weight);
  fixture.compare_gradient("bias", bias);
  fixture.check_all_used();
}

TEST_CASE("rms_norm agrees with PyTorch", "[ops][fixture]") {
  Fixture fixture("rms_norm");
  Tape tape;
  const Var x = tape.variable(fixture.tensor("x"));
  const Var weight = tape.variable(fixture.tensor("weight"));
  const Var y = rms_norm(x, weight, static_cast<Real>(fixture.number("eps")));
  fixture.backward("y", y);
  fixture.compare_value("y", y);
  fixture.compare_gradient("x", x);
  fixture.compare_gradient("weight", weight);
  fixture.check_all_used();
}

TEST_CASE("gelu, gelu_tanh, silu and softmax agree with PyTorch", "[ops][fixture]") {
  check_unary("gelu_erf", gelu);
  check_unary("gelu_tanh", gelu_tanh);
  check_unary("silu", silu);
  check_unary("softmax", softmax);
}

TEST_CASE("cross_entropy agrees with PyTorch", "[ops][fixture]") {
  const std::string file = GENERATE(as<std::string>{}, "cross_entropy", "cross_entropy_smoothed");
  Fixture fixture(file);
  Tape tape;
  const Var logits = tape.variable(fixture.tensor("logits"));
  const auto smoothing = static_cast<Real>(fixture.number("label_smoothing"));
  const Var loss = cross_entropy(logits, fixture.integers("labels"), {.smoothing = smoothing});
  fixture.backward("loss", loss);
  fixture.compare_value("loss", loss);
  fixture.compare_gradient("logits", logits);
  fixture.check_all_used();
}
