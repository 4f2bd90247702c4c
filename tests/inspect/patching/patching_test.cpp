// Patching, and the parts that all interventions share: resampling pairs, intervals, progress, errors, JSON.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "catch.h"
#include "inspect/effects/effect_scale.h"
#include "inspect/interventions.h"
#include "thimble/engine/error.h"
#include "thimble/engine/random.h"
#include "thimble/train/json.h"
#include "train/files/progress_recorder.h"

using namespace thimble;

TEST_CASE("resampling pairs have the same length and are different sequences", "[inspect]") {
  std::vector<std::int32_t> lengths(200);
  for (std::size_t i = 0; i < 200; ++i) lengths[i] = static_cast<std::int32_t>(3 + i % 7 % 3);
  lengths[50] = 9;
  const std::vector<std::int64_t> partner = resampling_pairs(lengths, 4);
  std::vector<std::int64_t> sorted = partner, all(200);
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), 0);
  CHECK(sorted == all);
  for (std::size_t i = 0; i < 200; ++i) {
    CHECK(lengths[static_cast<std::size_t>(partner[i])] == lengths[i]);
    CHECK((partner[i] == static_cast<std::int64_t>(i)) == (i == 50));
  }
  CHECK(resampling_pairs(lengths, 4) == partner);
  CHECK(resampling_pairs(lengths, 5) != partner);
}

TEST_CASE("patching measures the share of the logit difference that a head recovers", "[inspect]") {
  for (const Config& config : {small_config(), rich_config(), sequence_config()}) {
    Trained trained(config);
    trained.silence(trained.parameters(), {0, 1});
    trained.give();
    Plain none;
    const Result base = plain_pass(trained, 0, none);
    std::int64_t donor_index = 1;
    Result donor = plain_pass(trained, 1, none);
    while (donor.batch.lengths != base.batch.lengths || donor.batch.labels == base.batch.labels)
      donor = plain_pass(trained, ++donor_index, none);
    const std::vector<std::vector<Real>> outputs = none.seen;
    const auto difference = [&](const Result& result) {
      double sum = 0;
      const std::size_t v = result.logits.size() / base.batch.labels.size();
      for (std::size_t i = 0; i < base.batch.labels.size(); ++i) {
        const std::int32_t from = base.batch.labels[i], to = donor.batch.labels[i];
        if (from != to)
          sum += result.logits[i * v + static_cast<std::size_t>(to)] -
                 result.logits[i * v + static_cast<std::size_t>(from)];
      }
      return sum;
    };
    const PatchingReport report = patching(trained.evaluator, std::array{InputPair{0, donor_index}});
    REQUIRE(report.heads.size() == trained.heads().size());
    CHECK_THAT(report.difference, WithinAbs(difference(donor) - difference(base), 1e3 * kTolerance));
    for (const PatchingReport::Head& head : report.heads) {
      Plain hooks = change(trained, head.id);
      hooks.rows = outputs[static_cast<std::size_t>(head.id.layer)];
      const double expected = (difference(plain_pass(trained, 0, hooks)) - difference(base)) /
                              (difference(donor) - difference(base));
      CHECK_THAT(head.noising.all.effect, WithinAbs(expected, 1e-3 * kTolerance / 2e-5));
    }
    CHECK(report.heads[1].noising.all.effect == 0);
    CHECK(report.heads[0].noising.all.effect != 0);
    CHECK(static_cast<std::int32_t>(report.clean.size()) == base.batch.lengths[0]);
    CHECK(report.corrupted != report.clean);
  }
}

TEST_CASE("effects of patches are shares of the summed logit difference", "[inspect]") {
  const std::vector<PatchEffect> effects = patch_effects({{1, 2, 3}, {4, 8, 12}}, {4, 8, 12});
  CHECK_THAT(effects[0].effect, WithinRel(0.25, 1e-12));
  CHECK_THAT(effects[0].interval->low, WithinRel(0.25, 1e-12));
  CHECK_THAT(effects[1].interval->low, WithinRel(1, 1e-12));
  CHECK_THAT(effects[1].interval->high, WithinRel(1, 1e-12));
  CHECK(effects[0].pairs == 3);
  // Pairs that do not have what is patched, of which some would count as unchanged.
  const double none = std::nan("");
  const std::vector<PatchEffect> parts =
      patch_effects({{1, none, 3}, {none, none, 6}, {none, 3, none}}, {4, -8, 12});
  CHECK_THAT(parts[0].effect, WithinRel(0.25, 1e-12));
  CHECK((parts[0].pairs == 2 && parts[0].interval));
  CHECK((parts[1].effect == 0.5 && parts[1].pairs == 1 && !parts[1].interval));
  CHECK((std::isnan(parts[2].effect) && parts[2].pairs == 1));
  CHECK(to_json(parts[2])["effect"].is_null());
  CHECK(patch_effects({{1}}, {-4})[0].effect == -0.25);  // of one pair, without an interval
  CHECK_FALSE(patch_effects({{1}}, {-4})[0].interval);
  CHECK_THROWS_WITH(patch_effects({{1, 2}}, {-4, 3}), ContainsSubstring("train the model first"));
  CHECK_THROWS_WITH(patch_effects({{1}}, {0}), ContainsSubstring("the same for both inputs"));
}

TEST_CASE("patching refuses inputs that cannot be compared", "[inspect]") {
  Trained trained(rich_config());
  const std::vector<std::int32_t> lengths = Observed(trained).lengths;
  const auto longer = std::ranges::find_if(lengths, [&](auto n) { return n != lengths[0]; });
  const auto patch_pair = [&](std::int64_t clean, std::int64_t corrupted) {
    return patching(trained.evaluator, std::array{InputPair{clean, corrupted}});
  };
  CHECK_THROWS_WITH(patch_pair(0, longer - lengths.begin()), ContainsSubstring("choose two of equal length"));
  CHECK_THROWS_WITH(patch_pair(0, 0), ContainsSubstring("the inputs are the same; change a token of one"));
  CHECK_THROWS_AS(patch_pair(0, 60), ShapeError);
  CHECK_THROWS_AS(patch_pair(-1, 0), ShapeError);
  std::ranges::fill(trained.evaluator.model().parameters().values(), Real{0});
  CHECK_THROWS_AS(patch_pair(0, resampling_pairs(lengths, 1)[0]),
                  DataError);  // the same logits
}

TEST_CASE("effects report progress chunk by chunk, up to the announced work", "[inspect]") {
  Trained trained(rich_config(), 60, 1);
  ProgressRecorder recorder;
  {
    ProgressCounter progress("effects", effect_passes(trained.evaluator));
    trained.evaluator.report_to(progress);
    measure_effects(trained.evaluator);
    // Each pass reports each chunk: baseline, gradients, those of the scale, and for each of two layers capture,
    // three kinds of ablation and the removal of two heads.
    const std::size_t passes = 2 + kRoundingPasses + kUntrainedModels + 2 * (1 + 4 * 2);
    CHECK(recorder.shares.size() == 1 + trained.evaluator.chunks().size() * passes);
  }
  CHECK(std::ranges::is_sorted(recorder.shares));
  CHECK_THAT(recorder.shares.back(), WithinRel(1, 1e-9));
  CHECK(recorder.shares[recorder.shares.size() - 2] < 1 - 1e-9);
}

TEST_CASE("effects require a sequence and a finite loss", "[inspect]") {
  CHECK_THROWS_AS(Evaluator(small_config()).select(Split::test, 0), DataError);
  Config config = small_config();
  config.data.test = 0;
  CHECK_THROWS_AS(Evaluator(config).select(Split::test, 10), DataError);
  Trained trained(small_config());
  trained.evaluator.model().parameters().values()[0] = std::numeric_limits<Real>::quiet_NaN();
  CHECK_THROWS_AS(measure_effects(trained.evaluator), NumericError);
}

TEST_CASE("effects as JSON have the names of their fields", "[inspect]") {
  const Effect effect{.loss_change = 1,
                      .interval = {3, 4},
                      .accuracy = {2, {5, 6}, 0.5},
                      .capped_loss = {9, {10, 11}, 0.25},
                      .sequences = 7,
                      .labels = 8,
                      .distinct = 6};
  CHECK(
      json_text(to_json(effect)) ==
      R"({"loss_change":1.0,"accuracy_change":2.0,"interval":[3.0,4.0],"accuracy_interval":[5.0,6.0],"accuracy_p":0.5,"capped_loss":{"change":9.0,"interval":[10.0,11.0],"p":0.25},"sequences":7,"distinct":6,"labels":8})");
  const std::vector<AttentionLayer> layers{{.heads = 3}};
  HeadEffects head;
  head.mean = effect;
  CHECK(to_json(head).size() == 3);
  CHECK(to_json(head)["mean"] == to_json(effect));
  CHECK(json_text(to_json(Importance{1, 2})) == R"({"raw":1.0,"normalized":2.0})");
  CHECK(json_text(to_json(RemovalStep{.removed = 0, .loss = 1, .accuracy = 2}, layers)) ==
        R"({"removed":0,"layer":null,"head":null,"name":null,"loss":1.0,"accuracy":2.0})");
  const Json step = to_json(RemovalStep{1, HeadId{0, 2}, 1, 2}, layers);
  CHECK((step["head"] == 2 && step["name"] == "0.2"));
  const HeadPatch noising{{0.5}, {{0.25}}}, denoising{{0.75, Interval{0, 1}}, {}};
  CHECK(
      json_text(
          to_json(PatchingReport{{}, 2.5, {"a"}, {"b"}, {"c"}, {"d"}, {{{1, 2}, "", noising, denoising}}})) ==
      R"({"pairs":1,"inputs":"1 pair of test sequences","corruption":"resample","measure":"logit_difference","difference":2.5,)"
      R"("clean":["a"],"corrupted":["b"],"clean_labels":["c"],"corrupted_labels":["d"],"heads":[{"layer":1,"head":2,"name":"1.2",)"
      R"("noising":{"effect":0.5,"pairs":0,"positions":[{"effect":0.25,"pairs":0}]},)"
      R"("denoising":{"effect":0.75,"pairs":0,"interval":[0.0,1.0],"positions":[]}}]})");
  CHECK(to_json(PatchingReport{
            {2}, 0, {}, {}, {}, {}, {{{2, 0}, "cross.0", noising, denoising}}})["heads"][0]["attention"] ==
        "cross.0");
}
