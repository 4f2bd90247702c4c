// The report of an encoder-decoder.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/saved_model.h"
#include "inspect/scores/score_observer.h"
#include "inspect/timeline/head_log.h"
#include "thimble/inspect/inspect.h"
#include "thimble/inspect/patch.h"
#include "thimble/train/json.h"

using namespace thimble;

TEST_CASE("attention layers are those of the model", "[inspect]") {
  Config causal = small_config();
  causal.model.layers = 3;
  causal.model.attention.mask = Mask::causal;
  for (const Config& config :
       {small_config(), causal, writing_config(), deep_config(), convolution_config(small_config()),
        recurrent_config(Score::additive), recurrent_config(Score::none)}) {
    const Dataset dataset = make_dataset(config);
    const std::unique_ptr<Model> model = make_model(config.model, dataset);
    CHECK((model->attention_layers() == attention_layers(config.model)));
    for (const AttentionLayer& layer : model->attention_layers()) {
      const MultiHeadAttention* attention = model->attention(layer);
      CHECK(layer.heads == (attention != nullptr ? attention->sizes.heads : 1));
      CHECK(layer.d_value == (attention != nullptr ? attention->sizes.d_value : config.model.d_model));
    }
  }
  CHECK(attention_layers(causal.model)[2].title() == "layer 2");
  CHECK(attention_layers(deep_config().model)[5].title() == "cross.1");
  CHECK(attention_layers(causal.model)[2].name() == "encoder.2");
}

TEST_CASE("every attention of an encoder-decoder is scored on its own sequences", "[inspect]") {
  const Saved saved(deep_config());
  const Trained& trained = saved.trained;
  const InspectReport report = thimble::inspect(saved.source, {.sequences = 60, .examples = 2});
  const std::vector<AttentionLayer>& all = trained.trainer.model().attention_layers();
  REQUIRE(report.heads.size() == 2 * all.size());
  std::vector<double> value(report.heads.size()), queries(value), target(value), asked(value);
  for (std::int64_t b = 0; b < 60; ++b) {
    Batch batch;
    Example example;
    trained.trainer.dataset().fill(Split::test, b, 1, batch);
    trained.trainer.dataset().example(Split::test, b, example);
    const SiteRecorder recorder = pass_over(trained.trainer.model(), batch);
    for (std::size_t k = 0; k < value.size(); ++k) {
      const AttentionLayer& layer = all[k / 2];
      const auto& weights = recorder.seen.at(weights_site(k / 2));
      const auto& shape = recorder.shapes.at(weights_site(k / 2));
      const std::int64_t n = layer.queries_source ? batch.source_lengths[0] : batch.lengths[0];
      const std::int64_t m = layer.keys_source ? batch.source_lengths[0] : batch.lengths[0];
      const auto weight = [&](std::int64_t i, std::int64_t j) {
        const auto head = static_cast<std::int64_t>(k % 2);
        return weights[static_cast<std::size_t>((head * shape[2] + i) * shape[3] + j)];
      };
      for (std::int64_t i = 0; i < n; ++i, ++queries[k])
        for (std::int64_t j = 0; j < m; ++j) value[k] += weight(i, j) * static_cast<double>(std::abs(i - j));
      if (layer.stack != "cross") continue;
      for (const Alignment& alignment : trained.trainer.dataset().alignments(example)) {
        target[k] += weight(alignment.query, alignment.key);
        ++asked[k];
      }
    }
  }
  for (std::size_t k = 0; k < value.size(); ++k) {
    INFO(all[k / 2].name());
    const std::vector<HeadScore>& scores = report.heads[k].scores;
    CHECK(static_cast<double>(find_score(scores, "distance").eligible) == queries[k]);
    CHECK_THAT(find_score(scores, "distance").value, WithinRel(value[k] / queries[k], 1e-5));
    CHECK(static_cast<double>(find_score(scores, "task_target").eligible) == asked[k]);
    if (asked[k] > 0)
      CHECK_THAT(find_score(scores, "task_target").value, WithinRel(target[k] / asked[k], 1e-5));
    const bool cross = all[k / 2].stack == "cross";
    CHECK((find_score(scores, "self").eligible == 0) == cross);
    CHECK((find_score(scores, "special").eligible > 0) == (all[k / 2].stack == "decoder"));  // <begin>
    CHECK(report.heads[k].circuits.qk_reciprocity.has_value() == !cross);
    CHECK(report.heads[k].circuits.ov_singular_values.size() == 8);
    CHECK_FALSE(report.heads[k].circuits.ov_copying.has_value());
  }
  CHECK_THAT(report.attribution.reason, StartsWith("encoder-decoder"));
  CHECK(report.rollout.from_start.empty());
}

TEST_CASE("the report of an encoder-decoder names the sequences of each attention", "[inspect]") {
  const Saved saved(writing_config(), 2);
  const auto json = to_json(thimble::inspect(saved.source, {.sequences = 60, .examples = 1}));
  CHECK(json["length"] == 5);
  CHECK(json["source_length"] == 4);
  CHECK(json["attentions"][0] ==
        Json({{"name", "encoder.0"}, {"queries", "source"}, {"keys", "source"}, {"causal", false}}));
  CHECK(json["attentions"][2]["queries"] == "tokens");
  CHECK(json["attentions"][2]["keys"] == "source");
  const std::size_t sizes[][2] = {{4, 4}, {5, 5}, {5, 4}};
  for (std::size_t k = 0; k < 6; ++k) {
    CHECK(json["heads"][k]["layer"] == k / 2);
    CHECK(json["heads"][k]["mean_weights"].size() == sizes[k / 2][0]);
    for (const auto& row : json["heads"][k]["mean_weights"]) CHECK(row.size() == sizes[k / 2][1]);
  }
  const auto& example = json["examples"][0];
  CHECK(example["tokens"][0] == "<begin>");
  CHECK(example["targets"].back() == "<end>");
  CHECK(example["attention"][2][0].size() == example["tokens"].size());
  CHECK(example["attention"][2][0][0].size() == example["source"].size());
  CHECK_FALSE(example.contains("attentions"));
  Config encoder = small_config();
  const Saved other(encoder, 2);
  const auto plain = to_json(thimble::inspect(other.source, {.sequences = 60, .examples = 1}));
  for (const char* key : {"attentions", "source_length"}) CHECK_FALSE(plain.contains(key));
}

TEST_CASE("zero ablation of a cross head equals zeroing its columns of the output projection", "[inspect]") {
  Trained trained(deep_config());
  const EffectsReport report = measure_effects(trained.evaluator);
  const EvalResult before = trained.evaluator.run();
  CHECK(before.loss == report.baseline.loss);  // interventions left no change
  REQUIRE(report.heads.size() == 12);
  for (const HeadEffects& head : report.heads) {
    trained.give();
    trained.silence(trained.evaluator.model().parameters(), head.id);
    const EvalResult without = trained.evaluator.run();
    CHECK_THAT(head.zero.loss_change, WithinAbs(without.loss - before.loss, 1e-6));
    CHECK_THAT(head.zero.accuracy.mean, WithinAbs(without.accuracy - before.accuracy, 1e-12));
    CHECK(std::abs(head.zero.loss_change) > 1e-6);
  }
  trained.give();
  CHECK(trained.evaluator.run().loss == before.loss);
}

TEST_CASE("patching refuses sources of different lengths", "[inspect]") {
  Config config = writing_config();
  config.task = {.name = "majority", .symbols = 5, .length = 7, .min_length = 3};
  const Saved saved(config, 1);
  const Dataset& data = saved.trained.trainer.dataset();
  Example first, other;
  data.example(Split::test, 0, first);
  bool refused = false;
  for (std::int64_t i = 1; i < 60; ++i) {
    data.example(Split::test, i, other);
    if (first.target == other.target) continue;
    const bool fits = first.input.size() == other.input.size();
    if (fits) CHECK_NOTHROW(patch(saved.source, 0, i));
    if (!fits) CHECK_THROWS_WITH(patch(saved.source, 0, i), ContainsSubstring("choose two of equal length"));
    refused |= !fits;
  }
  CHECK(refused);
}

TEST_CASE("the log has the chance level of each head of an encoder-decoder", "[inspect]") {
  Trained trained(writing_config());
  const HeadLog log = head_log(writing_config());
  const std::span<const Real> weights = trained.parameters().values();
  const Json seen = log(weights);
  CHECK(seen["chance"].empty());
  Evaluator evaluator(writing_config());
  evaluator.select(Split::validation, kLoggedSequences);
  std::ranges::copy(weights, evaluator.model().parameters().values().begin());
  ScoreObserver scores(evaluator);
  evaluator.observe(scores);
  REQUIRE(seen["heads"].size() == 6);
  for (std::size_t k = 0; k < 6; ++k) {
    const HeadScore& mirror = find_score(scores.heads()[k].scores(), "mirror");
    const auto& head = seen["heads"][k];
    CHECK(head["attention"] == std::array{"encoder.0", "decoder.0", "cross.0"}[k / 2]);
    REQUIRE(mirror.eligible >= 100);
    CHECK_THAT(head["scores"]["mirror"].get<double>(), WithinAbs(mirror.value, 1e-6));
    CHECK_THAT(head["chance"]["mirror"].get<double>(), WithinAbs(mirror.chance, 1e-6));
    CHECK_THAT(head["attainable"]["mirror"].get<double>(), WithinAbs(mirror.attainable, 1e-6));
  }
}
