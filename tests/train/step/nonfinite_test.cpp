// A number that is not finite stops training with a message, and leaves the parameters unchanged.
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/train/run.h"
#include "thimble/train/safetensors.h"
#include "thimble/train/train.h"
#include "train/config/small_config.h"
#include "train/files/temporary_directory.h"
#include "train/step/trainer.h"

using namespace thimble;

namespace {

std::span<Real> values_of(Trainer& trainer, std::string_view name) {
  auto& store = trainer.model().parameters();
  for (int i = 0; i < static_cast<int>(store.entries().size()); ++i) {
    if (store.entry({i}).name == name) return store.values(Parameter{i});
  }
  throw Error("no parameter " + std::string(name));
}

// Returns the message of the error of step(), or ""; the parameters must keep their bits.
std::string complaint(Trainer& trainer) {
  const std::string before = trainer.model().parameters().hash();
  const std::int64_t steps = trainer.steps();
  try {
    trainer.step();
  } catch (const NumericError& e) {
    CHECK(trainer.model().parameters().hash() == before);
    CHECK(trainer.steps() == steps);
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a learning rate that blows the model up is reported with step, op and layer", "[train]") {
  for (const std::int64_t threads : {1, 2}) {
    Config config = small_config();
    config.train.threads = threads;
    config.train.optimizer = {.name = OptimizerKind::sgd, .lr = sizeof(Real) == 8 ? 1e250 : 1e30};
    Trainer trainer(config);
    std::string message;
    for (int step = 1; step <= 10 && message.empty(); ++step) {
      message = complaint(trainer);
      if (!message.empty())
        CHECK_THAT(message, StartsWith("step " + std::to_string(step) + ": the loss is "));
    }
    CAPTURE(message);
    CHECK_THAT(message,
               ContainsSubstring(", the gradient norm ") && ContainsSubstring(", the learning rate "));
    CHECK_THAT(message, ContainsSubstring("that is not finite is in op "));
    CHECK_THAT(message, ContainsSubstring(", layer "));
    CHECK_THAT(message, ContainsSubstring("lower the learning rate or set train.clip_norm"));
    CHECK(complaint(trainer) == message);  // and again the same
  }
}

TEST_CASE("a bad parameter is named, and so is the layer that uses it first", "[train]") {
  const std::pair<std::string, std::string> cases[] = {
      {"token_embedding.weight", "embedding"},
      {"encoder.layers.0.self_attn.in_proj_weight", "encoder.layers.0"},
      {"encoder.layers.0.linear1.bias", "encoder.layers.0"},
      {"output.3.bias", "output"}};
  for (const auto& [parameter, layer] : cases) {
    for (const Real bad : {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity()}) {
      CAPTURE(parameter, bad);
      Trainer trainer(small_config());
      CHECK(complaint(trainer).empty());
      values_of(trainer, parameter)[0] = bad;
      CHECK_THAT(complaint(trainer), ContainsSubstring("the first value that is not finite is in parameter " +
                                                       parameter + ", layer " + layer + ";"));
    }
  }
}

TEST_CASE("a gradient that overflows under a finite loss is reported as one", "[train]") {
  Config config = small_config();
  config.model.output.hidden = 0;
  config.model.norm = NormOrder::pre;
  Trainer trainer(config);
  // Logits of moderate size, as products of tiny normalized values and huge weights; the gradient on the way
  // back is huge.
  constexpr Real kHuge = std::numeric_limits<Real>::max();
  for (Real& w : values_of(trainer, "encoder.norm.weight")) w = 1 / kHuge;
  for (Real& w : values_of(trainer, "output.weight")) w = w > 0 ? kHuge : -kHuge;
  const std::string message = complaint(trainer);
  CAPTURE(message);
  CHECK_THAT(message, StartsWith("step 1: the loss is "));
  CHECK(message.find("the loss is nan") == std::string::npos);
  CHECK(message.find("the loss is inf") == std::string::npos);
  CHECK_THAT(message,
             ContainsSubstring("the first gradient that is not finite is in op layer_norm, layer encoder;"));
}

TEST_CASE("training can continue once the cause is removed", "[train]") {
  Trainer trainer(small_config()), undisturbed(small_config());
  Real& weight = values_of(trainer, "encoder.layers.0.linear1.weight")[7];
  const Real before = weight;
  weight = std::numeric_limits<Real>::quiet_NaN();
  CHECK_FALSE(complaint(trainer).empty());
  weight = before;
  for (int i = 0; i < 3; ++i) CHECK(trainer.step().loss == undisturbed.step().loss);
  CHECK(trainer.model().parameters().hash() == undisturbed.model().parameters().hash());
}

TEST_CASE("a NaN that reaches one logit only is not overlooked", "[train]") {
  Config config = small_config();
  config.train.batch = 1;
  config.train.shards = 1;
  Trainer trainer(config);
  for (std::size_t token = 0; token < 6; ++token) {  // some of these tokens are no label of the batch
    Real& bias = values_of(trainer, "output.3.bias")[token];
    const Real before = bias;
    bias = std::numeric_limits<Real>::quiet_NaN();
    CAPTURE(token);
    CHECK_FALSE(complaint(trainer).empty());
    bias = before;
  }
}

TEST_CASE("a head that breaks first is named", "[train]") {
  Config uneven = small_config();
  uneven.model.attention.d_key = 4;
  uneven.model.attention.d_value = 12;
  for (const Config& config : {small_config(), uneven}) {
    for (const std::size_t head : {0, 1}) {
      CAPTURE(config.model.attention_sizes().d_key, head);
      Trainer trainer(config);
      // Finite queries and keys of this head whose product is not.
      const std::span<Real> weights = values_of(trainer, "encoder.layers.0.self_attn.in_proj_weight");
      const std::size_t width = 16, d_key = static_cast<std::size_t>(config.model.attention_sizes().d_key);
      for (const std::size_t first : {head * d_key, (2 + head) * d_key})  // of the two heads' queries, keys
        for (std::size_t column = 0; column < width; ++column)
          weights[first * width + column] =
              std::sqrt(std::numeric_limits<Real>::max()) * (column == 0 ? 40 : 1);
      CHECK_THAT(complaint(trainer), ContainsSubstring("op attention, layer encoder.layers.0, head " +
                                                       std::to_string(head) + ";"));
    }
  }
}

TEST_CASE("a run that breaks keeps its last good checkpoint", "[train]") {
  const TemporaryDirectory directory;
  Config config = small_config();
  config.train.steps = 200;
  config.train.optimizer = {.name = OptimizerKind::sgd, .lr = 100, .weight_decay = 100};  // 10^4 times a step
  config.train.checkpoint_every = 1;
  const std::filesystem::path run = directory / "run";
  CHECK_THROWS_AS(train(config, {.directory = run.string()}), NumericError);
  const ModelSource last = open_run(run);
  CHECK_NOTHROW(SafetensorsFile(last.weights));
  CHECK_FALSE(std::filesystem::exists(run / "summary.json"));
}
