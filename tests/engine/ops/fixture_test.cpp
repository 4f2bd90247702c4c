// Ops against PyTorch: values and gradients.
#include <functional>

#include "catch.h"
#include "fixtures_file.h"
#include "thimble/engine/ops.h"

using namespace thimble;
using tests::Fixture;

namespace {

// Compares an op of these inputs with a fixture: its output, and the gradient of each input.
void check_op(Fixture& fixture, const std::vector<std::string>& inputs, const std::string& output,
              const std::function<Var(std::span<const Var>)>& op) {
  Tape tape;
  std::vector<Var> vars;
  for (const std::string& name : inputs) vars.push_back(tape.variable(fixture.tensor(name)));
  const Var out = op(vars);
  fixture.backward(output, out);
  fixture.compare_value(output, out);
  for (std::size_t i = 0; i < vars.size(); ++i) fixture.compare_gradient(inputs[i], vars[i]);
  fixture.check_all_used();
}

void check_unary(const std::string& file, Var (*op)(Var)) {
  Fixture fixture(file);
  check_op(fixture, {"x"}, "y", [&](std::span<const Var> x) { return op(x[0]); });
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
  check_op(fixture, {"q", "k", "v"}, "out", [&](std::span<const Var> x) {
    const Var out = attention(x[0], x[1], x[2], options);
    fixture.compare("weights", capture.value().shape(), capture.value().values());
    return out;
  });
}

TEST_CASE("head_linear agrees with PyTorch", "[ops][fixture]") {
  Fixture fixture("head_linear");
  check_op(fixture, {"x", "weight"}, "y",
           [&](std::span<const Var> x) { return head_linear(x[0], x[1], fixture.integer("heads")); });
}

TEST_CASE("additive_score agrees with PyTorch and NumPy", "[ops][fixture]") {
  Fixture fixture("additive_score");
  check_op(fixture, {"q", "k", "weight"}, "scores", [&](std::span<const Var> x) {
    return additive_score(x[0], x[1], x[2], fixture.integer("heads"), fixture.integer("kv_heads"));
  });
}

TEST_CASE("rotary agrees with PyTorch", "[ops][fixture]") {
  Fixture fixture("rotary");
  const auto setting = [&](const char* key) { return fixture.integer(key); };
  check_op(fixture, {"x"}, "y", [&](std::span<const Var> x) {
    return rotary(x[0], setting("first"), setting("count"), setting("depth"), setting("first_position"));
  });
}

TEST_CASE("layer_norm and rms_norm agree with PyTorch", "[ops][fixture]") {
  Fixture layer("layer_norm"), rms("rms_norm");
  check_op(layer, {"x", "weight", "bias"}, "y", [&](std::span<const Var> x) {
    return layer_norm(x[0], x[1], x[2], static_cast<Real>(layer.number("eps")));
  });
  check_op(rms, {"x", "weight"}, "y", [&](std::span<const Var> x) {
    return rms_norm(x[0], x[1], static_cast<Real>(rms.number("eps")));
  });
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
  const auto smoothing = static_cast<Real>(fixture.number("label_smoothing"));
  const std::vector<std::int32_t> labels = fixture.integers("labels");
  check_op(fixture, {"logits"}, "loss",
           [&](std::span<const Var> x) { return cross_entropy(x[0], labels, {.smoothing = smoothing}); });
}
