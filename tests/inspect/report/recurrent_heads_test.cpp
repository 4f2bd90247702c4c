// The report of a recurrent model, whose decoder attends position by position.
#include <cmath>
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/saved_model.h"
#include "inspect/timeline/head_log.h"
#include "thimble/inspect/inspect.h"
#include "thimble/inspect/patch.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"

using namespace thimble;

namespace {

const Score kScores[] = {Score::additive, Score::dot, Score::general, Score::scaled_dot};

// Returns the attention weights (T, S) of a pass over one sequence.
std::vector<double> weights_without_padding(const SiteRecorder& recorder, const Batch& batch) {
  std::vector<double> weights = recorder.seen.at(weights_site(0));
  for (std::int32_t t = 1; std::ssize(weights) < batch.length * batch.source_length; ++t) {
    const std::vector<double>& row = recorder.seen.at({SiteKind::attention_weights, 0, t});
    weights.insert(weights.end(), row.begin(), row.end());
  }
  return weights;
}

// Zeroes the weights that read the context vector.
void ignore_context(ParameterStore& store, Score score, std::int64_t channels) {
  const auto zero = [&](const char* name, std::int64_t first) {
    for (const auto& entry : store.entries()) {
      if (entry.name != name) continue;
      const auto columns = static_cast<std::size_t>(2 * channels);
      for (std::size_t row = 0; row < entry.size() / columns; ++row)
        std::fill_n(store.values().data() + entry.offset + row * columns + static_cast<std::size_t>(first),
                    channels, Real{0});
    }
  };
  zero("decoder.attention.combine.weight", 0);
  if (score == Score::additive) zero("decoder.gru.weight_ih_l0", channels);
}

// Multiplies the context vector at all positions.
struct Scaling : ChunkHooks {
  explicit Scaling(Real by) : factor(by) {}
  bool replace(Site site, const Shape&, MatrixView value) override {
    if (site.kind != SiteKind::head_output) return false;
    for (std::int64_t row = 0; row < value.rows; ++row)
      for (std::int64_t c = 0; c < value.cols; ++c) value.row(row)[c] *= factor;
    return true;
  }
  Real factor;
};

}  // namespace

TEST_CASE("the attention of a recurrent decoder is scored as a cross head", "[inspect]") {
  for (const Score score : kScores) {
    CAPTURE(static_cast<int>(score));
    const Saved saved(recurrent_config(score));
    const Trained& trained = saved.trained;
    const InspectReport report = thimble::inspect(saved.source, {.sequences = 60, .examples = 60});
    REQUIRE(report.heads.size() == 1);
    REQUIRE(report.examples.size() == 60);
    double distance = 0, target = 0, queries = 0, asked = 0;
    for (std::int64_t b = 0; b < 60; ++b) {
      Batch batch;
      Example example;
      trained.trainer.dataset().fill(Split::test, b, 1, batch);
      trained.trainer.dataset().example(Split::test, b, example);
      const std::vector<double> weights =
          weights_without_padding(pass_over(trained.trainer.model(), batch), batch);
      const auto weight = [&](std::int64_t i, std::int64_t j) {
        return weights[static_cast<std::size_t>(i * batch.source_length + j)];
      };
      const auto shown =
          report.examples[static_cast<std::size_t>(b)].weights(saved.source.config.model, {0, 0});
      REQUIRE(std::ssize(shown) == batch.lengths[0] * batch.source_lengths[0]);
      for (std::int64_t i = 0; i < batch.lengths[0]; ++i, ++queries) {
        for (std::int64_t j = 0; j < batch.source_lengths[0]; ++j) {
          distance += weight(i, j) * static_cast<double>(std::abs(i - j));
          CHECK_THAT(shown[static_cast<std::size_t>(i * batch.source_lengths[0] + j)],
                     WithinAbs(weight(i, j), kTolerance));
        }
      }
      for (const Alignment& alignment : trained.trainer.dataset().alignments(example)) {
        target += weight(alignment.query, alignment.key);
        ++asked;
      }
    }
    const std::vector<HeadScore>& scores = report.heads[0].scores;
    CHECK(static_cast<double>(find_score(scores, "distance").eligible) == queries);
    CHECK_THAT(find_score(scores, "distance").value, WithinRel(distance / queries, 1e-5));
    CHECK_THAT(find_score(scores, "task_target").value, WithinRel(target / asked, 1e-5));
    CHECK(report.heads[0].circuits.reasons.size() == 6);
    CHECK_THAT(report.attribution.reason, StartsWith("recurrent"));
    const auto json = to_json(report);
    CHECK(json["attentions"][0]["name"] == "cross.0");
    CHECK(json["model"]["kind"] == "recurrent");
  }
}

TEST_CASE("zero ablation of a recurrent decoder equals reading the context with weights of 0", "[inspect]") {
  for (const Score score : kScores) {
    CAPTURE(static_cast<int>(score));
    Trained trained(recurrent_config(score));
    const EffectsReport report = measure_effects(trained.evaluator);
    REQUIRE(report.heads.size() == 1);
    const EvalResult before = trained.evaluator.run();
    CHECK(before.loss == report.baseline.loss);
    ignore_context(trained.evaluator.model().parameters(), score, 16);
    const EvalResult without = trained.evaluator.run();
    CHECK_THAT(report.heads[0].zero.loss_change, WithinAbs(without.loss - before.loss, 1e-6));
    CHECK_THAT(report.heads[0].zero.accuracy.mean, WithinAbs(without.accuracy - before.accuracy, 1e-12));
    CHECK(std::abs(report.heads[0].zero.loss_change) > 1e-6);
  }
}

TEST_CASE("replacing the context of a recurrent decoder by itself changes nothing", "[inspect]") {
  for (const Score score : kScores) {
    CAPTURE(static_cast<int>(score));
    Trained trained(recurrent_config(score));
    const std::int64_t time = trained.evaluator.dataset().length();
    Tensor contexts({60, time, 16});
    const Capture::Sites sites{{{SiteKind::head_output}, &contexts}};
    const double loss = trained.evaluator.run([&] { return std::make_unique<Capture>(sites); }).loss;
    const HeadId head{0, 0};
    for (const std::int64_t shift : {0, 1}) {
      const Substitute substitute = [&](const HeadRow& own) {
        return std::as_const(contexts).matrix().row(own.sequence * time + (own.position + shift) % time);
      };
      const double replaced = trained.evaluator
                                  .run([&] {
                                    return replace_heads(trained.evaluator.model().attention_layers(),
                                                         std::span(&head, 1), substitute);
                                  })
                                  .loss;
      CHECK((replaced == loss) == (shift == 0));
    }
  }
}

#ifdef THIMBLE_DOUBLE
TEST_CASE("the importance of a recurrent decoder's attention is the derivative of the loss", "[inspect]") {
  for (const Score score : kScores) {
    CAPTURE(static_cast<int>(score));
    Trained trained(recurrent_config(score));
    constexpr double kStep = 1e-5;
    const auto run = [&](double factor) {
      return trained.evaluator.run([&] { return std::make_unique<Scaling>(factor); }).per_sequence;
    };
    const std::vector<SequenceResult> more = run(1 + kStep), less = run(1 - kStep);
    double mean = 0;
    for (std::size_t i = 0; i < more.size(); ++i)
      mean += std::abs(more[i].loss - less[i].loss) / (2 * kStep) / static_cast<double>(more.size());
    CHECK_THAT(measure_effects(trained.evaluator).heads[0].importance.raw, WithinRel(mean, 1e-6));
  }
}
#endif

TEST_CASE("the context of one recurrent pass can be patched into another", "[inspect]") {
  for (const Score score : {Score::additive, Score::dot}) {
    const Saved saved(recurrent_config(score));
    const Dataset& data = saved.trained.trainer.dataset();
    Example base, other;
    data.example(Split::test, 0, base);
    std::int64_t from = 1;
    for (data.example(Split::test, from, other);
         other.input.size() != base.input.size() || other.target == base.target;
         data.example(Split::test, ++from, other)) {
    }
    const PatchingReport report = patch(saved.source, 0, from);
    REQUIRE(report.heads.size() == 1);
    CHECK(std::isfinite(report.heads[0].noising.all.effect));
    CHECK(report.heads[0].noising.all.effect != 0);
  }
}

TEST_CASE("the attention of a recurrent decoder is logged during training", "[inspect]") {
  for (const Score score : {Score::additive, Score::general}) {
    const Config config = recurrent_config(score);
    Trained trained(config);
    const auto seen = head_log(config)(trained.parameters().values());
    REQUIRE(seen["heads"].size() == 1);
    CHECK(seen["heads"][0]["attention"] == "cross.0");
    CHECK(seen["heads"][0]["scores"]["entropy"].is_number());
  }
}

TEST_CASE("a recurrent model without attention is not inspected", "[inspect]") {
  CHECK_THROWS_WITH(
      thimble::inspect({recurrent_config(Score::none), {}}, {}),
      "a model with model.attention.score none has no attention heads; `thimble eval` evaluates it");
}
