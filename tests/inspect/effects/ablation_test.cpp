// Ablation of sets of heads: against PyTorch, and pairs that start from the inputs of a later block.
#include <fmt/ranges.h>

#include <map>
#include <string>
#include <vector>

#include "catch.h"
#include "fixtures_file.h"
#include "inspect/effects/head_names.h"
#include "inspect/effects/joint_effects.h"
#include "inspect/interventions.h"
#include "thimble/engine/error.h"
#include "train/data/table/table.h"

using namespace thimble;

namespace {

// Returns a data file of tokens and labels (N, T).
std::string rows_of(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& labels,
                    std::size_t time) {
  std::string text;
  for (std::size_t first = 0; first < tokens.size(); first += time) {
    const auto row = [&](const std::vector<std::int32_t>& all) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(first);
      return fmt::format("{}", fmt::join(from, from + static_cast<std::ptrdiff_t>(time), " "));
    };
    text += row(tokens) + "\t" + row(labels) + "\n";
  }
  return text;
}

void compare_effect(const Effect& effect, std::span<const double> expected) {
  // The change of the loss and its interval, and the change of accuracy.
  const double got[] = {effect.loss_change, effect.interval.low, effect.interval.high, effect.accuracy.mean};
  for (std::size_t i = 0; i < 4; ++i)
    CHECK_THAT(got[i], WithinAbs(expected[i], sizeof(Real) == 8 ? 1e-9 : 1e-5));
}

}  // namespace

TEST_CASE("ablations of sets of heads agree with PyTorch, intervals too", "[inspect][fixture]") {
  tests::Fixture fixture("head_ablations");
  const auto time = static_cast<std::size_t>(fixture.shape("tokens").last());
  DataTexts texts;
  const std::string rows = rows_of(fixture.integers("tokens"), fixture.integers("labels"), time);
  texts.main = {"rows.tsv", rows};
  texts.validation = {"validation.tsv", rows};
  texts.test = {"test.tsv", rows};
  texts.vocabulary = {"vocabulary", "0\n1\n2\n3\n4\n5\n6\n"};
  OpenConfig config = small_config();
  config.task = {.name = "file"};
  config.source = std::make_shared<const Table>(texts);
  config.model = {.d_model = fixture.shape("token_embedding.weight").last(),
                  .heads = fixture.integer("heads"),
                  .layers = 2,
                  .d_ff = fixture.shape("encoder.layers.0.linear1.bias").last(),
                  .norm = NormOrder::pre,
                  .activation = Activation::gelu,
                  .positions = Positions::sinusoidal};
  config.model.output.hidden = 0;
  Evaluator evaluator(config);
  fixture.load(evaluator.model().parameters(), "");
  evaluator.select(Split::test, 1000);
  const std::vector<double> losses = fixture.doubles("losses");
  const EvalResult baseline = evaluator.run();
  REQUIRE(baseline.per_sequence.size() == losses.size());
  const auto before = static_cast<std::int64_t>(2 * losses.size());  // rows of the other files
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const std::size_t line =
        static_cast<const Table&>(*config.source).stored_of(before + static_cast<std::int64_t>(i)) -
        2 * losses.size();
    CHECK_THAT(baseline.per_sequence[i].loss, WithinAbs(losses[line], sizeof(Real) == 8 ? 1e-10 : 1e-5));
  }
  const std::vector<double> zero = fixture.doubles("zero"), mean = fixture.doubles("mean");
  const std::string& sets = fixture.setting("sets");
  std::size_t number = 0;
  for (std::size_t start = 0; start < sets.size(); ++number) {
    const std::size_t end = std::min(sets.find(';', start), sets.size());
    INFO(sets.substr(start, end - start));
    const std::vector<HeadId> heads =
        parse_heads(sets.substr(start, end - start), evaluator.model().attention_layers());
    const AblationReport report = measure_ablation(evaluator, heads);
    compare_effect(report.zero, std::span(zero).subspan(4 * number, 4));
    compare_effect(report.mean, std::span(mean).subspan(4 * number, 4));
    start = end + 1;
  }
  CHECK(4 * number == zero.size());
  fixture.check_all_used();
}

TEST_CASE("sequences are paired if both their sources and their targets are as long", "[inspect]") {
  std::string rows;
  std::map<std::pair<int, int>, int> counts;
  // Sums of both lengths, and one length alone, are equal more often than both.
  for (const auto& [source, target] :
       {std::pair{1, 3}, {3, 1}, {2, 2}, {2, 2}, {4, 2}, {1, 1}, {3, 3}, {1, 4}, {1, 4}, {1, 4}, {2, 1}}) {
    const auto row = [](int length) {
      return fmt::format("{}",
                         fmt::join(std::vector<std::string>(static_cast<std::size_t>(length), "a"), " "));
    };
    rows += row(source) + "\t" + row(target) + "\n";
    ++counts[{source, target}];
  }
  DataTexts texts;
  texts.main = {"rows.tsv", rows};
  texts.validation = {"validation.tsv", rows};
  texts.test = {"test.tsv", rows};
  OpenConfig config = writing_config();
  config.task = {.name = "file"};
  config.source = std::make_shared<const Table>(texts);
  Evaluator evaluator(config);
  evaluator.select(Split::test, 100);
  const HeadId head{0, 0};
  CHECK(measure_ablation(evaluator, {&head, 1}).unpaired ==
        std::ranges::count_if(counts, [](const auto& lengths) { return lengths.second == 1; }));
}

TEST_CASE("one head ablated as a set has the effects of the head", "[inspect]") {
  for (const Config& config : {rich_config(), writing_config()}) {
    Trained trained(config);
    const EffectsReport all = measure_effects(trained.evaluator);
    for (const HeadEffects& head : all.heads) {
      const AblationReport report = measure_ablation(trained.evaluator, {&head.id, 1});
      CHECK(report.zero.loss_change == head.zero.loss_change);
      CHECK(report.mean.loss_change == head.mean.loss_change);
      CHECK(report.resample.loss_change == head.resample.loss_change);
      CHECK(report.resample.accuracy.interval.low == head.resample.accuracy.interval.low);
      CHECK(report.unpaired == all.unpaired);
    }
  }
}

TEST_CASE("pairs and greedy removal equal ablations of whole passes", "[inspect]") {
  for (const Config& config : {rich_config(), writing_config(), sequence_config()}) {
    Trained trained(config);
    EffectsReport effects = measure_effects(trained.evaluator);
    // Every head costs nothing on this scale.
    effects.scale.at_chance = false;
    effects.scale.smallest_accuracy = effects.scale.smallest_loss = 100;
    const JointReport joint = measure_joint_effects(trained.evaluator, effects);
    const std::size_t heads = effects.heads.size();
    CHECK(joint.sequences == trained.evaluator.sequences());
    REQUIRE(joint.pairs.size() == heads * (heads - 1) / 2);
    for (const PairEffect& pair : joint.pairs) {
      const Effect whole = measure_ablation(trained.evaluator, pair.heads).zero;
      CHECK_THAT(pair.loss_change, WithinAbs(whole.loss_change, 1e-12));
      CHECK_THAT(pair.accuracy_change, WithinAbs(whole.accuracy.mean, 1e-12));
      CHECK_THAT(pair.capped_loss_change, WithinAbs(whole.capped_loss.mean, 1e-12));
    }
    CHECK(joint.groups.empty());
    REQUIRE(joint.greedy.size() == heads + 1);
    std::vector<HeadId> removed;
    for (std::size_t step = 1; step <= heads; ++step) {
      double least = 1e9;
      HeadId best;
      for (const HeadEffects& head : effects.heads) {
        if (std::ranges::find(removed, head.id) != removed.end()) continue;
        std::vector<HeadId> more = removed;
        more.push_back(head.id);
        std::ranges::sort(more);
        const Effect effect = measure_ablation(trained.evaluator, more).zero;
        const double cost = std::max(-effect.accuracy.mean, effect.loss_change);
        if (cost < least - 1e-12) {
          least = cost;
          best = head.id;
        }
      }
      CHECK((joint.greedy[step].id == best));
      removed.push_back(best);
      std::vector<HeadId> sorted = removed;
      std::ranges::sort(sorted);
      const Effect effect = measure_ablation(trained.evaluator, sorted).zero;
      CHECK_THAT(joint.greedy[step].loss - effects.baseline.loss, WithinAbs(effect.loss_change, 1e-6));
    }
    CHECK(joint.removable_greedily == static_cast<std::int64_t>(heads));
    CHECK(trained.evaluator.sequences() == std::ssize(effects.baseline.per_sequence));
  }
}
