// Direct logit attribution and rollout against plain computations from the same forward passes.
#include "inspect/circuits/attribution.h"

#include <cmath>
#include <map>

#include "catch.h"
#include "inspect/circuits/circuit_observer.h"
#include "inspect/circuits/weights.h"
#include "inspect/saved_model.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "train/config/small_config.h"
#include "train/step/trainer.h"

using namespace thimble;

namespace {

constexpr double kClose = sizeof(Real) == 8 ? 1e-10 : 1e-5;

struct TrainedEncoder : Trainer {
  explicit TrainedEncoder(const Config& c, int steps = 5) : Trainer(c), config(c) {
    for (int i = 0; i < steps; ++i) step();
  }
  // Returns the attribution on the first `sequences` test sequences.
  CircuitReport circuits(std::int64_t sequences) const {
    Evaluator evaluator(config);
    evaluator.select(Split::test, sequences);
    std::ranges::copy(model().parameters().values(), evaluator.model().parameters().values().begin());
    CircuitObserver observer(evaluator);
    evaluator.observe(observer);
    return observer.finish();
  }
  Config config;
};

Config with_output(OutputConfig output) {
  Config config = rich_config();
  config.model.output = output;
  config.model.norm_epsilon = 0.1;
  if (output.per == OutputPer::next)
    config.task = {.name = "reverse", .symbols = 6, .length = 4, .min_length = 2};
  if (output.per == OutputPer::sequence) {
    config.task = {.name = "majority", .symbols = 4, .length = 6, .min_length = 3};
    config.model.attention.mask = Mask::none;
  }
  return config;
}

using Channels = std::vector<double>;

// Returns the logit of a token that a part of x adds through the frozen final norm and the output matrix.
double logit_of(const Model& model, const Channels& part, const Channels& x, std::int32_t token) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, variance = 0, part_mean = 0, sum = 0;
  for (std::size_t c = 0; c < x.size(); ++c) {
    mean += x[c] / n;
    part_mean += part[c] / n;
  }
  for (const double value : x) variance += (value - mean) * (value - mean) / n;
  const DoubleMatrix weight = in_double(model.parameters(), "encoder.norm.weight"),
                     output = in_double(model.parameters(), "output.weight");
  for (std::size_t c = 0; c < x.size(); ++c) {
    sum += output(token, static_cast<std::int64_t>(c)) * weight.values[c] * (part[c] - part_mean) /
           std::sqrt(variance + model.config().norm_epsilon);
  }
  return sum;
}

// Returns the parts of the vector at one position, by name.
std::map<std::string, Channels> parts_at(const Model& model, std::map<Site, std::vector<double>>& seen,
                                         std::int64_t row) {
  const std::int64_t channels = model.config().d_model, size = channels / model.config().heads;
  const auto at = [&](SiteKind kind, std::size_t layer = 0) {
    const auto first = seen.at({kind, static_cast<std::int32_t>(layer)}).begin() + row * channels;
    return Channels(first, first + channels);
  };
  std::map<std::string, Channels> parts{{"embedding", at(SiteKind::embedding)}};
  for (std::size_t l = 0; l < model.attention_layers().size(); ++l) {
    const MultiHeadAttention& attention = *model.attention(model.attention_layers()[l]);
    const std::string name = "layer " + std::to_string(l);
    const DoubleMatrix out = in_double(model.parameters(), attention.out_proj_weights.at(0));
    const Channels z = at(SiteKind::head_output, l), mid = at(SiteKind::residual_mid, l);
    for (std::int64_t h = 0; h < model.config().heads; ++h) {
      Channels& part = parts["head " + HeadId{static_cast<std::int64_t>(l), h}.name()] = Channels(z.size());
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t d = h * size; d < (h + 1) * size; ++d)
          part[static_cast<std::size_t>(c)] += out(c, d) * z[static_cast<std::size_t>(d)];
      }
    }
    parts[name + " attention bias"] = in_double(model.parameters(), *attention.out_proj_bias).values;
    Channels& feed_forward = parts[name + " feed-forward"] = at(SiteKind::residual_out, l);
    for (std::size_t c = 0; c < mid.size(); ++c) feed_forward[c] -= mid[c];
  }
  return parts;
}

}  // namespace

TEST_CASE("the parts add up to the logits of the model's own passes, whatever the output", "[inspect]") {
  for (const OutputConfig& output :
       {OutputConfig{.per = OutputPer::position}, OutputConfig{.per = OutputPer::next},
        OutputConfig{.per = OutputPer::sequence, .pooling = Pooling::mean},
        OutputConfig{.per = OutputPer::sequence, .pooling = Pooling::first},
        OutputConfig{.per = OutputPer::sequence, .pooling = Pooling::last}}) {
    CAPTURE(output.per, output.pooling);
    const TrainedEncoder trainer(with_output(output));
    const Attribution attribution = trainer.circuits(60).attribution;
    REQUIRE(attribution.reason.empty());
    Batch batch;
    trainer.dataset().fill(Split::test, 0, 60, batch);
    Tape tape(Tape::Mode::inference);
    tape.bind(trainer.model().parameters(), {});
    const Var logits = trainer.model()(tape, labeled_input(batch), {});
    double mean = 0, sum = 0;
    for (std::size_t i = 0; i < batch.row_labels.size(); ++i)
      mean += static_cast<double>(logits.value().row(static_cast<std::int64_t>(i))[batch.row_labels[i]]);
    mean /= static_cast<double>(batch.row_labels.size());
    for (const Attribution::Part& part : attribution.parts) sum += part.mean;
    CHECK(attribution.labels == static_cast<std::int64_t>(batch.row_labels.size()));
    CHECK_THAT(attribution.logit, WithinAbs(mean, kClose));
    CHECK_THAT(sum, WithinAbs(mean, kClose));
    CHECK(attribution.worst_error > 0);
    CHECK(attribution.inexact == 0);
  }
}

TEST_CASE("every part is its image under the frozen norm and the output net", "[inspect]") {
  const TrainedEncoder trainer(rich_config());
  const Model& model = trainer.model();
  Batch batch;
  trainer.dataset().fill(Split::test, 0, 9, batch);
  SiteRecorder recorder = pass_over(model, batch);
  const DoubleMatrix output = in_double(model.parameters(), "output.weight");
  std::map<std::string, double> means;
  const auto labels = static_cast<double>(batch.rows.size());
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    const std::int32_t token = batch.row_labels[i];
    const auto parts = parts_at(model, recorder.seen, batch.rows[i]);
    const auto first = recorder.seen.at({SiteKind::residual_out, 1}).begin() + batch.rows[i] * 16;
    const Channels x(first, first + 16);
    for (const auto& [name, part] : parts) means[name] += logit_of(model, part, x, token) / labels;
    const auto norm_bias = in_double(model.parameters(), "encoder.norm.bias").values;
    for (std::size_t c = 0; c < 16; ++c)
      means["final norm bias"] += output(token, static_cast<std::int64_t>(c)) * norm_bias[c] / labels;
    means["output bias"] +=
        in_double(model.parameters(), "output.bias").values[static_cast<std::size_t>(token)] / labels;
  }
  const Attribution attribution = trainer.circuits(9).attribution;
  REQUIRE(attribution.parts.size() == means.size());
  CHECK(attribution.parts.front().name == "embedding");
  for (const Attribution::Part& part : attribution.parts) {
    CAPTURE(part.name);
    CHECK(part.mean != 0);
    CHECK_THAT(part.mean, WithinAbs(means.at(part.name), kClose));
  }
}

TEST_CASE("the parts add up to the logits whatever the layout of heads", "[inspect]") {
  std::vector<Config> configs = configs_of_heads(rich_config());
  for (const std::vector<Config>& more :
       {configs_of_parts(rich_config()), configs_of_language_models(rich_config())})
    std::ranges::copy(more, std::back_inserter(configs));
  for (const Config& config : configs) {
    CAPTURE(to_yaml(config));
    const TrainedEncoder trainer(config);
    const Attribution attribution = trainer.circuits(60).attribution;
    CHECK(attribution.inexact == 0);
    CHECK(std::ssize(attribution.parts) == 3 + config.model.layers * (config.model.heads + 2));
    double sum = 0;
    for (const Attribution::Part& part : attribution.parts) sum += part.mean;
    CHECK_THAT(sum, WithinAbs(attribution.logit, 100 * kClose));
  }
}

TEST_CASE("attribution refuses a pass over some positions only", "[inspect]") {
  const TrainedEncoder trainer(rich_config(), 0);
  Batch batch;
  trainer.dataset().fill(Split::test, 0, 4, batch);
  AttributionObserver observer(trainer.model());
  observer.begin({.batch = batch});
  Tape tape(Tape::Mode::inference);
  tape.bind(trainer.model().parameters(), {});
  CHECK_THROWS_AS(trainer.model()(tape, labeled_input(batch), {.hooks = &observer}), ShapeError);
}

TEST_CASE("attribution is not available where logits are not a sum of parts", "[inspect]") {
  Config post = rich_config(), two_layer = rich_config();
  post.model.norm = NormOrder::post;
  two_layer.model.output.hidden = 8;
  for (const auto& [config, word] :
       {std::pair{post, "post-norm"}, std::pair{two_layer, "two-layer output net"}}) {
    const TrainedEncoder trainer(config, 0);
    const CircuitReport report = trainer.circuits(20);
    CHECK_THAT(report.attribution.reason, ContainsSubstring(word));
    CHECK(report.attribution.parts.empty());
    CHECK(report.heads.size() == 4);
    CHECK(report.rollout.from_start.size() == 49);
    const Json json = to_json(report.attribution);
    CHECK(json["available"] == false);
    CHECK(json["reason"] == report.attribution.reason);
    CHECK_THROWS_AS(AttributionObserver(trainer.model()), ConfigError);
  }
}

TEST_CASE("attribution as JSON", "[inspect]") {
  const TrainedEncoder trainer(rich_config());
  const Attribution attribution = trainer.circuits(20).attribution;
  const Json json = to_json(attribution);
  CHECK(json["available"] == true);
  REQUIRE(json["parts"].size() == 11);
  CHECK(json["parts"][2]["name"] == "head 0.1");
  CHECK(json["parts"][2]["mean"] == attribution.parts[2].mean);
  CHECK(json["logit"] == attribution.logit);
  CHECK(json["labels"] == attribution.labels);
  CHECK(json["worst_error"] == attribution.worst_error);
  CHECK(json["inexact"] == 0);
  CHECK_FALSE(json.contains("warning"));
}

TEST_CASE("rollout is the product over layers of mean weights and identity, normalized", "[inspect]") {
  for (const Mask mask : {Mask::causal, Mask::none}) {
    Config config = rich_config();
    config.model.layers = 3;
    config.model.attention.mask = mask;
    const TrainedEncoder trainer(config);
    DoubleMatrix mean(7, 7), mean_end(7, 7), count(7, 7);
    for (std::int64_t b = 0; b < 40; ++b) {
      Batch batch;
      trainer.dataset().fill(Split::test, b, 1, batch);
      const std::int64_t length = batch.lengths[0];
      const SiteRecorder recorder = pass_over(trainer.model(), batch);
      DoubleMatrix rollout(length, length);
      for (std::int64_t i = 0; i < length; ++i) rollout(i, i) = 1;
      for (const std::size_t layer : {0, 1, 2}) {
        const auto& weights = recorder.seen.at(weights_site(layer));
        DoubleMatrix step(length, length);
        for (std::int64_t i = 0; i < length; ++i) {
          double sum = 0;
          for (std::int64_t j = 0; j < length; ++j) {
            const auto at = static_cast<std::size_t>(i * 7 + j);
            sum += step(i, j) = (weights[at] + weights[49 + at]) / 2 + (i == j);
          }
          for (std::int64_t j = 0; j < length; ++j) step(i, j) /= sum;
        }
        rollout = matmul(step, rollout);
      }
      for (std::int64_t i = 0; i < length; ++i)
        for (std::int64_t j = 0; j < length; ++j) {
          mean(i, j) += rollout(i, j);
          mean_end(7 - length + i, 7 - length + j) += rollout(i, j);
          ++count(i, j);
        }
    }
    REQUIRE((count(6, 6) > 1 && count(6, 6) < 40));
    const CircuitReport report = trainer.circuits(40);
    REQUIRE(report.rollout.from_start.size() == 49);
    REQUIRE(report.rollout.from_end.size() == 49);
    for (std::size_t i = 0; i < 49; ++i) {
      CHECK_THAT(report.rollout.from_start[i], WithinAbs(mean.values[i] / count.values[i], 1e-6));
      CHECK_THAT(report.rollout.from_end[i], WithinAbs(mean_end.values[i] / count.values[48 - i], 1e-6));
    }
  }
}

TEST_CASE("the rollout of positions that no sequence has is unknown", "[inspect]") {
  const TrainedEncoder trainer(rich_config(), 0);
  std::int64_t shorter = 0;
  for (Batch batch; shorter < 60; ++shorter) {
    trainer.dataset().fill(Split::test, shorter, 1, batch);
    if (batch.lengths[0] == 7) break;
  }
  INFO("the first sequence of full length is number " << shorter);
  const CircuitReport report = trainer.circuits(shorter);
  REQUIRE(shorter > 0);
  CHECK(report.rollout.from_start[0] > 0);
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(std::isnan(report.rollout.from_start[6 * 7 + i]));
    CHECK(std::isnan(report.rollout.from_start[i * 7 + 6]));
  }
  CHECK(map_json(report.rollout.from_start, 7)[6][0].is_null());
}
