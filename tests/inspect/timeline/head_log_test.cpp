// The scores of train.log_heads, against the scorer on plain passes.
#include "inspect/timeline/head_log.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "inspect/saved_model.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/label.h"
#include "thimble/inspect/timeline.h"
#include "thimble/train/json.h"
#include "thimble/train/train.h"
#include "train/runs/run_files.h"

using namespace thimble;

namespace {

std::span<const Real> weights_of(const Trainer& trainer) { return trainer.model().parameters().values(); }

// Returns the scores of every head on the first validation sequences, run one by one.
std::vector<HeadScorer> expected_scores(const Trainer& trainer, const Config& config,
                                        std::int64_t sequences) {
  const Dataset& dataset = trainer.dataset();
  const bool causal = config.model.attention.mask == Mask::causal;
  const auto size = static_cast<std::size_t>(dataset.length() * dataset.length());
  const auto heads = static_cast<std::size_t>(config.model.heads);
  std::vector<HeadScorer> scorers(static_cast<std::size_t>(config.model.layers) * heads,
                                  HeadScorer(dataset.length(), causal));
  for (std::int64_t i = 0; i < sequences; ++i) {
    Batch batch;
    dataset.fill(Split::validation, i, 1, batch);
    const SiteRecorder recorder = pass_over(trainer.model(), batch);
    const std::vector<Alignment> alignments = dataset.alignments(batch.example);
    const ScoreTargets targets(std::span(batch.tokens).first(static_cast<std::size_t>(batch.lengths[0])),
                               causal, {alignments});
    for (std::size_t head = 0; head < scorers.size(); ++head)
      scorers[head].add(
          targets,
          std::span(recorder.seen.at(weights_site(head / heads))).subspan(head % heads * size, size));
  }
  return scorers;
}

// Requires the same scores of a model after those of another model.
void expect_true_scores(const Config& config, std::int64_t sequences) {
  Trainer trainer(config);
  const HeadLog log = head_log(config);
  log(weights_of(trainer));
  for (int i = 0; i < 10; ++i) trainer.step();
  const Json seen = log(weights_of(trainer));
  CHECK_THAT(seen["loss"].get<double>(),
             WithinRel(trainer.evaluate(Split::validation, sequences).loss, 1e-5));
  const std::vector<HeadScorer> scorers = expected_scores(trainer, config, sequences);
  REQUIRE(seen["heads"].size() == scorers.size());
  CHECK(seen["sequences"] == sequences);
  for (std::size_t i = 0; i < scorers.size(); ++i) {
    const auto& head = seen["heads"][i];
    CHECK(head["layer"] == static_cast<std::int64_t>(i) / config.model.heads);
    CHECK(head["head"] == static_cast<std::int64_t>(i) % config.model.heads);
    for (const HeadScore& score : scorers[i].scores()) {
      CAPTURE(i, score.name, score.eligible);
      const auto& value = head["scores"][std::string(score.name)];
      if (score.eligible < kEnoughQueries || !std::isfinite(score.value)) {
        CHECK(value.is_null());
        continue;
      }
      CHECK_THAT(value.get<double>(), WithinAbs(score.value, 1e-5));
      if (score.at) continue;
      CHECK(seen["eligible"][std::string(score.name)] == score.eligible);
      const auto& chance = seen["chance"][std::string(score.name)];
      if (std::isfinite(score.chance)) CHECK_THAT(chance.get<double>(), WithinAbs(score.chance, 1e-6));
      const auto& attainable = seen["attainable"][std::string(score.name)];
      CHECK_THAT(attainable.get<double>(), WithinAbs(score.attainable, 1e-6));
    }
  }
}

}  // namespace

TEST_CASE("logged scores are those of the model's own passes", "[inspect]") {
  Config config = small_config();
  expect_true_scores(config, 40);  // all there are
  config.data.validation = 200;
  expect_true_scores(config, kLoggedSequences);
  config = rich_config();  // padding, a causal mask, two layers, dropout that must be off
  config.data.validation = 200;
  expect_true_scores(config, kLoggedSequences);
}

TEST_CASE("a score with too few eligible queries is null", "[inspect]") {
  Config config = small_config();  // 4 queries a sequence
  config.data.validation = 24;
  const Trainer trainer(config);
  CHECK(head_log(config)(weights_of(trainer))["heads"][0]["scores"]["mirror"].is_null());
  config.data.validation = 25;
  CHECK(head_log(config)(weights_of(Trainer(config)))["heads"][0]["scores"]["mirror"].is_number());
}

TEST_CASE("a model that is not finite has no heads to log", "[inspect]") {
  Trainer trainer(small_config());
  std::ranges::fill(trainer.model().parameters().values(), std::nan(""));
  const auto seen = head_log(small_config())(weights_of(trainer));
  CHECK(seen["heads"].empty());
  CHECK(json_text(seen["loss"]) == "null");
}

TEST_CASE("without validation sequences there is nothing to log", "[inspect]") {
  Config config = small_config();
  config.data.validation = 0;
  CHECK_THROWS_AS(head_log(config), DataError);
  CHECK_THROWS_WITH(head_log(config), ContainsSubstring("train.log_heads: "));
}

TEST_CASE("a run with logged heads has a timeline, and is otherwise the same", "[inspect]") {
  const TemporaryDirectory directory;
  Config config = small_config();
  const std::string hash = train(config).weights_hash;
  config.train.log_heads = true;
  for (const Precision precision : {Precision::float32, Precision::float64}) {
    config.train.precision = precision;
    const auto run = directory / (precision == Precision::float32 ? "single" : "double");
    const TrainResult result = train(config, {.directory = run.string(), .make_head_log = head_log});
    if (precision == small_config().train.precision) CHECK(result.weights_hash == hash);
    const Timeline timeline = read_timeline(run);
    REQUIRE(timeline.steps.size() == 17);
    CHECK(timeline.steps.front().step == 0);
    CHECK(timeline.steps.back().step == 20);
    CHECK(timeline.steps.back().heads.size() == 2);
    CHECK(timeline.steps.back().heads[1].scores.contains("mirror"));
    CHECK(timeline.steps.back().chance.at("mirror") == 0.25);
    CHECK(timeline.curves.size() == 22);  // of 20 steps of training and of two evaluations
  }
}
