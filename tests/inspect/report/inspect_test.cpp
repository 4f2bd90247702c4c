// The report on attention heads, against plain computations from the same forward passes.
#include "thimble/inspect/inspect.h"

#include <map>
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/hand_made.h"
#include "inspect/saved_model.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"

using namespace thimble;

namespace {

struct InspectedModel : SavedModel {
  using SavedModel::SavedModel;
  InspectReport inspect(std::int64_t sequences) const {
    return thimble::inspect(source, {.sequences = sequences, .examples = 2});
  }
};

// Runs the first test sequences one by one and calls visit(sequence, length, weights by site).
template <class Visit>
void each_sequence(const InspectedModel& trained, std::int64_t count, const Visit& visit) {
  for (std::int64_t b = 0; b < count; ++b) {
    Batch batch;
    trained.trainer.dataset().fill(Split::test, b, 1, batch);
    visit(batch.lengths[0], pass_over(trained.trainer.model(), batch).seen);
  }
}

void expect_true_report(const InspectedModel& trained, std::int64_t sequences) {
  const InspectReport report = trained.inspect(sequences);
  const ModelConfig& model = trained.source.config.model;
  const std::int64_t time = trained.trainer.dataset().length();
  CHECK(report.baseline.sequences == sequences);
  CHECK(report.length == time);
  REQUIRE(static_cast<std::int64_t>(report.heads.size()) == model.layers * model.heads);
  for (std::int64_t l = 0; l < model.layers; ++l) {
    for (std::int64_t h = 0; h < model.heads; ++h) {
      const HeadReport& head = report.heads[static_cast<std::size_t>(l * model.heads + h)];
      CHECK(head.effects.id.layer == l);
      CHECK(head.effects.id.head == h);
      const HeadScore& mirror = find_score(head.scores, "mirror");
      // Means of cells, with positions from the start and from the end, and over how many sequences.
      std::vector<double> mean(static_cast<std::size_t>(time * time)), mean_end = mean, count = mean,
                                                                       count_end = mean;
      double value = 0, chance = 0, queries = 0;
      each_sequence(trained, sequences, [&](std::int64_t length, const auto& seen) {
        const auto& weights = seen.at(weights_site(static_cast<std::size_t>(l)));
        for (std::int64_t i = 0; i < length; ++i, ++queries) {
          const std::int64_t visible = model.attention.mask == Mask::causal ? i + 1 : length;
          const auto row = static_cast<std::size_t>((h * time + i) * time);
          value += static_cast<double>(weights[row + static_cast<std::size_t>(length - 1 - i)]);
          chance += length - 1 - i < visible ? 1.0 / static_cast<double>(visible) : 0;
          for (std::int64_t j = 0; j < length; ++j) {
            const auto weight = static_cast<double>(weights[row + static_cast<std::size_t>(j)]);
            const auto at = static_cast<std::size_t>(i * time + j),
                       at_end = at + static_cast<std::size_t>((time - length) * (time + 1));
            mean[at] += weight;
            mean_end[at_end] += weight;
            ++count[at];
            ++count_end[at_end];
          }
        }
      });
      CHECK(mirror.eligible == static_cast<std::int64_t>(queries));
      CHECK_THAT(mirror.value, WithinRel(value / queries, 1e-5));
      CHECK_THAT(mirror.chance, WithinRel(chance / queries, 1e-12));
      REQUIRE(head.mean_weights.from_start.size() == mean.size());
      const std::vector<std::int64_t>& counts = report.mean_counts[static_cast<std::size_t>(l)];
      CHECK(std::ranges::equal(counts, count, {}, [](std::int64_t n) { return static_cast<double>(n); }));
      const bool varies = std::ranges::min(count) < std::ranges::max(count);
      REQUIRE(head.mean_weights.from_end.empty() == !varies);
      double worst = 0;
      for (std::size_t i = 0; i < mean.size(); ++i) {
        worst = std::max(worst, std::abs(head.mean_weights.from_start[i] - mean[i] / count[i]));
        if (!varies) continue;
        CHECK(count_end[i] == count[mean.size() - 1 - i]);
        worst = std::max(worst, std::abs(head.mean_weights.from_end[i] - mean_end[i] / count_end[i]));
      }
      CHECK(worst < 1e-6);
    }
  }
}

}  // namespace

TEST_CASE("scores and mean weights are those of the model's own passes", "[inspect]") {
  expect_true_report(InspectedModel(small_config(), 10), 60);
  expect_true_report(InspectedModel(small_config(), 10), 37);  // more than one batch, the last one smaller
}

TEST_CASE("padding, a causal mask and several layers are told apart", "[inspect]") {
  Config config = rich_config();
  expect_true_report(InspectedModel(config, 10), 60);
  config.model.attention.mask = Mask::none;
  expect_true_report(InspectedModel(config, 10), 45);
}

TEST_CASE("with a causal mask the rows of the mean weights are distributions", "[inspect]") {
  const InspectedModel trained(rich_config(), 3);
  for (const HeadReport& head : trained.inspect(60).heads) {
    for (std::size_t i = 0; i < 7; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < 7; ++j) {
        const double w = head.mean_weights.from_start[i * 7 + j];
        CHECK((j <= i ? w > 0 : w == 0));
        sum += w;
      }
      CHECK_THAT(sum, WithinAbs(1, 1e-6));
    }
  }
}

TEST_CASE("a head that has learned to reverse attends to the mirrored position", "[inspect]") {
  Config config = small_config();
  config.model.heads = 1;
  config.train.steps = 900;
  config.train.optimizer.lr = 5e-3;
  const InspectedModel trained(config, 900);
  REQUIRE(trained.inspect(60).heads.size() == 1);
  const InspectReport report = trained.inspect(60);
  const HeadScore mirror = find_score(report.heads[0].scores, "mirror");
  CHECK(mirror.chance == 0.25);
  CHECK(mirror.eligible == 240);
  CHECK(mirror.value > 0.6);
  CHECK_THAT(mirror.at_init, WithinAbs(0.25, 0.1));
  CHECK(mirror.at_init == find_score(InspectedModel(config, 0).inspect(60).heads[0].scores, "mirror").value);
  CHECK(report.heads[0].label.name == "mirror");
  CHECK(report.heads[0].label.verdict == Verdict::important);
}

TEST_CASE("the report has at most as many sequences as the split", "[inspect]") {
  const InspectedModel trained(small_config(), 0);
  CHECK(trained.inspect(1000).baseline.sequences == 60);
  CHECK(trained.inspect(1).baseline.sequences == 1);
}

TEST_CASE("weights of another model cannot be inspected", "[inspect]") {
  InspectedModel trained(small_config(), 0);
  trained.source.config.model.d_ff = 25;
  CHECK_THROWS_AS(trained.inspect(10), CheckpointError);
}

TEST_CASE("answers that can only be guessed are counted apart, before and after ablation", "[inspect]") {
  for (const std::int64_t shortest : {8, 5}) {
    Config config = hand_made::induction().config.values();
    config.task.min_length = shortest;
    const InspectReport report =
        inspect_weights(config, hand_made::induction().set_weights, {.sequences = 60, .examples = 60});
    // Of rounds of n tokens, n - 1 answers follow from the input, and the first of the second round where n is known.
    std::int64_t labels = 0, knowable = 0, correct = 0;
    for (const ForwardTrace& e : report.examples) {
      const std::int64_t all = std::ssize(e.tokens), known = (all + 1) / 2 - (shortest < 8 ? 1 : 0);
      labels += all;
      knowable += known;
      for (std::int64_t i = 0; i < all; ++i) {
        const auto at = static_cast<std::size_t>(i);
        CHECK((e.guessed[at] == 0) == (i >= all - known));
        correct += i >= all - known && e.predictions[at] == e.targets[at] ? 1 : 0;
      }
    }
    const Json json = to_json(report)["baseline"]["knowable"];
    CHECK(report.baseline.labels == labels);
    CHECK(json["labels"] == knowable);
    CHECK(json["accuracy"] == static_cast<double>(correct) / static_cast<double>(knowable));
    CHECK(json["reason"] == "the first round can only be guessed");
    const Effect& zero = report.heads[2].effects.zero;
    CHECK(zero.knowable == knowable);
    CHECK(zero.knowable_change < zero.accuracy.mean);
    CHECK_THAT(report.heads[2].label.summary,
               ContainsSubstring(" of 100 answers that can be known are lost"));
  }
}

TEST_CASE("the report as JSON has everything, under the names of its fields", "[inspect]") {
  const InspectReport report = InspectedModel(small_config(), 3).inspect(20);
  const Json json = to_json(report);
  CHECK(json["sequences"] == 20);
  CHECK(json["length"] == 4);
  CHECK(json["tokens"].size() == 6);
  CHECK(json["weights_hash"] == report.weights_hash);
  const EvalResult& baseline = report.baseline;
  CHECK(json["baseline"] == Json({{"loss", baseline.loss},
                                  {"accuracy", baseline.accuracy},
                                  {"sequence_accuracy", baseline.sequence_accuracy},
                                  {"sequences", 20},
                                  {"labels", 80},
                                  {"knowable", nullptr}}));
  CHECK(json["cumulative_ablation"].size() == 3);
  CHECK(json["rollout"].size() == 4);
  CHECK(json["attribution"]["available"] == false);
  REQUIRE(json["heads"].size() == 2);
  for (std::size_t h = 0; h < 2; ++h) {
    const auto& head = json["heads"][h];
    CHECK(head["layer"] == 0);
    CHECK(head["head"] == h);
    CHECK(head["label"] == report.heads[h].label.name);
    CHECK(head["sentence"] == report.heads[h].label.sentence);
    const HeadScore& mirror = find_score(report.heads[h].scores, "mirror");
    CHECK(head["scores"]["mirror"]["value"] == mirror.value);
    CHECK(head["scores"]["mirror"]["chance"] == mirror.chance);
    CHECK(head["scores"]["mirror"]["at_init"] == mirror.at_init);
    CHECK(head["scores"]["mirror"]["attainable"] == 1);
    CHECK(head["scores"]["mirror"]["eligible"] == 80);
    CHECK(head["ablation"]["zero"]["loss_change"] == report.heads[h].effects.zero.loss_change);
    CHECK(head["importance"]["raw"] == report.heads[h].effects.importance.raw);
    CHECK(head["circuits"]["qk_reciprocity"] == *report.heads[h].circuits.qk_reciprocity);
    REQUIRE(head["mean_weights"].size() == 4);
    CHECK(head["mean_weights"][1][2] == report.heads[h].mean_weights.from_start[1 * 4 + 2]);
    CHECK_FALSE(head.contains("mean_weights_from_end"));
    CHECK(json["mean_counts"][0][1][2] == 20);
  }
  REQUIRE(json["examples"].size() == 2);
  CHECK(json["examples"][1]["attention"][0][1][3][2] == report.examples[1].attention[(1 * 4 + 3) * 4 + 2]);
}

TEST_CASE("the task target is the attention on the positions the answer depends on", "[inspect]") {
  // For reversal these are the mirrored positions.
  const InspectReport reversed = InspectedModel(small_config(), 10).inspect(60);
  for (const HeadReport& head : reversed.heads) {
    const HeadScore &target = find_score(head.scores, "task_target"),
                    &mirror = find_score(head.scores, "mirror");
    CHECK_THAT(target.value, WithinRel(mirror.value, 1e-12));
    CHECK_THAT(target.chance, WithinRel(mirror.chance, 1e-12));
    CHECK(target.eligible == mirror.eligible);
  }
  // Eligible queries of induction have an earlier occurrence: key i - N + 1 of [r, r].
  Config config = small_config();
  config.task = {.name = "induction", .symbols = 6, .length = 4};
  config.model.attention.mask = Mask::causal;
  const InspectReport report = InspectedModel(config, 10).inspect(60);
  for (const HeadReport& head : report.heads) {
    double value = 0;  // all sequences have the same length
    for (std::size_t query = 4; query < 7; ++query)
      value += head.mean_weights.from_start[query * 7 + query - 3] / 3;
    const HeadScore& target = find_score(head.scores, "task_target");
    CHECK(target.eligible == 180);
    CHECK_THAT(target.value, WithinAbs(value, 1e-6));
    CHECK_THAT(target.chance, WithinAbs((1.0 / 5 + 1.0 / 6 + 1.0 / 7) / 3, 1e-12));
  }
}
