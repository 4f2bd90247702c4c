// Ten optimizer steps of whole models against PyTorch.
#include <algorithm>
#include <cmath>

#include "catch.h"
#include "engine/kernels/optimizer.h"
#include "engine/model/transformer.h"
#include "fixtures_file.h"
#include "thimble/engine/optimizer.h"
#include "thimble/engine/schedule.h"

using namespace thimble;
using tests::Fixture;

namespace {

constexpr std::int64_t kSteps = 10;

Transformer make_model(const Fixture& fixture) {
  const bool pre = fixture.setting("norm") == "pre";
  ModelConfig config;
  config.d_model = fixture.shape("initial.token_embedding.weight").last();
  config.heads = fixture.integer("heads");
  config.layers = pre ? 2 : 1;
  config.d_ff = fixture.shape("initial.encoder.layers.0.linear1.bias").last();
  config.norm = pre ? NormOrder::pre : NormOrder::post;
  config.activation = pre ? Activation::gelu : Activation::relu;
  config.positions = pre ? Positions::sinusoidal : Positions::learned;
  config.output.hidden = pre ? 0 : fixture.shape("initial.output.0.bias").last();
  const std::int64_t vocabulary = fixture.shape("initial.token_embedding.weight")[0];
  return Transformer(config, {vocabulary, fixture.shape("tokens").last()});
}

OptimizerConfig make_optimizer_config(const Fixture& fixture, OptimizerKind kind) {
  OptimizerConfig config;
  config.name = kind;
  config.lr = fixture.number("lr");
  config.weight_decay = fixture.number("weight_decay");
  if (kind == OptimizerKind::sgd) {
    config.momentum = fixture.number("momentum");
  } else {
    config.beta1 = fixture.number("beta1");
    config.beta2 = fixture.number("beta2");
    config.epsilon = fixture.number("eps");
  }
  return config;
}

// A key bias shifts all scores of a query alike, so its gradient is zero in theory. Adam divides what
// rounding made of it by its own size: in float, that moves these parameters by thousandths, and only the
// query and value biases compare.
void compare_final_parameters(Fixture& fixture, const ParameterStore& store, OptimizerKind kind) {
  const bool amplifies = kind != OptimizerKind::sgd && sizeof(Real) == sizeof(float);
  for (const auto& entry : store.entries()) {
    const std::string tensor = "final." + entry.name;
    const auto values = store.values().subspan(entry.offset, entry.size());
    if (amplifies && entry.name.ends_with("in_proj_bias")) {
      const std::size_t third = values.size() / 3;
      fixture.compare_part(tensor, values, 0, third);
      fixture.compare_part(tensor, values, 2 * third, third);
    } else {
      fixture.compare(tensor, entry.shape, values);
    }
  }
}

void check_ten_steps(const std::string& file, OptimizerKind kind) {
  Fixture fixture(file);
  Transformer model = make_model(fixture);
  ParameterStore& store = model.parameters();
  fixture.load(store, "initial.");
  const OptimizerConfig config = make_optimizer_config(fixture, kind);
  const ScheduleConfig schedule{ScheduleKind::cosine, fixture.integer("warmup")};
  Optimizer optimizer(config, store);
  const auto tokens = fixture.integers("tokens"), labels = fixture.integers("labels");
  const std::size_t batch = tokens.size() / kSteps;

  AlignedVector<Real> gradients(store.size());
  ForwardOptions options;
  options.training = true;
  Tape tape;
  tape.bind(store, gradients);
  std::vector<double> losses, norms, rates;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    const auto part = [&](const auto& rows) {
      return std::span(rows).subspan(static_cast<std::size_t>(t) * batch, batch);
    };
    tape.rewind();
    std::ranges::fill(gradients, Real{0});
    const Var logits =
        model(tape, {.tokens = part(tokens), .length = fixture.shape("tokens").last()}, options);
    const Var loss = cross_entropy(logits, part(labels));
    tape.backward(loss);
    if (t == 0) {
      fixture.compare_value("first.logits", logits);
      fixture.compare_parameters(store, gradients, "first.grad.");
    }
    losses.push_back(loss.item());
    norms.push_back(std::sqrt(kernels::sum_of_squares(gradients)));
    rates.push_back(config.lr * schedule_factor(schedule, config.lr, t, kSteps));
    optimizer.begin_step(rates.back(), clip_factor(norms.back(), fixture.number("clip_norm")));
    for (const auto& segment : optimizer.segments()) optimizer.update(segment, store.values(), gradients);
  }
  fixture.compare("losses", {kSteps}, losses);
  fixture.compare("grad_norms", {kSteps}, norms);
  fixture.compare("lr", {kSteps}, rates);
  compare_final_parameters(fixture, store, kind);
  fixture.check_all_used();
}

}  // namespace

TEST_CASE("ten steps of AdamW agree with PyTorch", "[train][fixture]") {
  check_ten_steps("adamw_model", OptimizerKind::adamw);
}

TEST_CASE("ten steps of Adam agree with PyTorch", "[train][fixture]") {
  check_ten_steps("adam_model", OptimizerKind::adam);
}

TEST_CASE("ten steps of SGD agree with PyTorch", "[train][fixture]") {
  check_ten_steps("sgd_model", OptimizerKind::sgd);
}
