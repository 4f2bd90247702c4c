// Whether the keys that a head attends to carry its effect: on hand-made heads, and the sums of any model's.
#include "thimble/inspect/cells.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/cells/measure_cells.h"
#include "inspect/effects/measure_effects.h"
#include "inspect/hand_made.h"
#include "inspect/saved_model.h"

using namespace thimble;

namespace {

constexpr double kLossError = sizeof(Real) == sizeof(float) ? 2e-5 : 1e-11;

FoundPattern position(std::int64_t k) {
  FoundPattern pattern;
  pattern.score = "absolute_position";
  pattern.at = k;
  return pattern;
}

// Every target is the token at position 2. A row starts with a boundary, whose value is 0; of the attention on it and on
// position 2 it gets 82 %.
hand_made::HandMade behind_boundary() {
  std::string rows;
  for (int row = 0; row < 1024; ++row) {
    std::string input = "|";
    for (int p = 0, rest = row; p < 5; ++p, rest /= 4) input += std::string(" ") + "abcd"[rest % 4];
    rows += input + "\t";
    for (int p = 0; p < 6; ++p) rows += std::string(p > 0 ? " " : "") + input[4];
    rows += "\n";
  }
  DataTexts texts;
  texts.main = {"rows.tsv", rows};
  const OpenConfig config(hand_made::hand_made_config({.name = "file"}, 5, 6),
                          std::make_shared<const Table>(texts));
  return {config, [names = make_dataset(config).names()](Model& model) {
            hand_made::Maker make(model);
            make.start_layer(0, 2);
            for (std::int64_t t = 0; t < make.vocabulary(); ++t) {
              make.ask(0, make.token(t), hand_made::kSharp);
              make.ask(1, make.token(t), hand_made::kSharp + 1.5);
            }
            make.offer(0, make.position(2));
            make.offer(1, make.position(0));
            make.copy_token([&](std::int64_t t) { return make.answer(t); });
            make.forget_token(std::ranges::find(names, "|") - names.begin());
          }};
}

}  // namespace

TEST_CASE("attention on keys of value zero does not name a head", "[inspect]") {
  const hand_made::HandMade made = behind_boundary();
  const InspectReport report = inspect_weights(made.config, made.set_weights);
  CHECK(report.baseline.accuracy == 1);
  const HeadReport& head = report.heads[0];
  CHECK_THAT(find_score(head.scores, "absolute_position").value, WithinAbs(0.82, 0.01));
  CHECK(find_score(head.scores, "absolute_position").at == 0);
  REQUIRE(head.cells.has_value());
  CHECK(head.cells->carried == Carried::no);
  CHECK(head.cells->alone == head.cells->mean);
  CHECK(head.cells->whole == 1);
  CHECK(head.label.verdict == Verdict::important);
  CHECK(head.label.name.empty());
  CHECK_THAT(head.label.sentence,
             StartsWith("attends by position 0, which does not carry its effect: 82 % of its attention"));
  CHECK_FALSE(report.heads[1].cells.has_value());  // costs nothing
}

TEST_CASE("the cells of a pattern are the visible keys that it names", "[inspect]") {
  const std::vector<std::int32_t> tokens{3, 1, 3, 1};
  const std::vector<Alignment> alignments{{3, 0, 0}, {3, 1, 1}};
  const std::vector<std::string_view> kinds{"left", "right"};
  using Keys = std::vector<std::vector<std::int64_t>>;  // by query
  std::size_t others = 0;
  const auto keys = [&](std::string_view score, std::optional<std::int64_t> at = {}, bool causal = true,
                        std::string_view kind = {}) {
    FoundPattern pattern = position(0);
    pattern.score = score;
    pattern.at = at;
    pattern.kind = kind;
    Keys found(4);
    for (const auto& [query, key] : cells_of(pattern, {tokens, causal, {alignments, {}, 2, others}}, kinds))
      found[static_cast<std::size_t>(query)].push_back(key);
    return found;
  };
  CHECK(keys("previous_token") == Keys{{}, {0}, {1}, {2}});
  CHECK(keys("next_token", {}, false) == Keys{{1}, {2}, {3}, {}});
  CHECK(keys("self") == Keys{{0}, {1}, {2}, {3}});
  CHECK(keys("mirror") == Keys{{}, {}, {1}, {0}});
  CHECK(keys("mirror", {}, false) == Keys{{3}, {2}, {1}, {0}});
  CHECK(keys("offset", -2) == Keys{{}, {}, {0}, {1}});
  CHECK(keys("absolute_position", 1) == Keys{{}, {1}, {1}, {1}});
  CHECK(keys("entropy") == Keys{{0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}});
  CHECK(keys("induction") == Keys{{}, {}, {1}, {2}});
  CHECK(keys("same_token", {}, false) == Keys{{2}, {3}, {0}, {1}});
  CHECK(keys("task_target") == Keys{{}, {}, {}, {0, 1}});
  CHECK(keys("task_target", {}, true, "right") == Keys{{}, {}, {}, {1}});
  others = 1;  // "right" is not summed
  CHECK(keys("task_target") == Keys{{}, {}, {}, {0}});
  CHECK(keys("task_target", {}, true, "right") == Keys{{}, {}, {}, {1}});
}

TEST_CASE("cells are tested in every kind of attention, with and without other heads", "[inspect]") {
  std::vector<Config> configs{small_config(), writing_config(), recurrent_config(Score::additive),
                              recurrent_config(Score::scaled_dot)};
  for (const Config& config : configs_of_heads(small_config())) configs.push_back(config);
  configs[0].model.positions = Positions::rotary;
  configs[0].model.attention.mask = Mask::causal;
  for (const Config& config : configs) {
    Trained trained(config, 60, 5);
    Evaluator& evaluator = trained.evaluator;
    const std::vector<AttentionLayer>& layers = evaluator.model().attention_layers();
    // Equal scores, and so uniform weights, of the additive score.
    ParameterStore& store = trained.parameters();
    for (const auto& entry : store.entries())
      if (entry.name.ends_with("attention.score_weight") && config.model.kind == ModelKind::recurrent)
        std::fill_n(store.values().data() + entry.offset, entry.size(), Real{0});
    trained.give();
    EffectsReport effects = measure_effects(evaluator);
    std::vector<HeadVerdict> verdicts(effects.heads.size());
    std::vector<std::vector<FoundPattern>> patterns(effects.heads.size());
    const auto test = [&](const FoundPattern& pattern, std::size_t i, const HeadVerdict& verdict,
                          const JointReport& joint = {}) {
      patterns[i] = {pattern};
      verdicts[i] = verdict;
      const auto found = measure_cells(evaluator, patterns, verdicts, effects, joint);
      patterns[i].clear();
      return found[i].value();
    };
    for (std::size_t i = 0; i < effects.heads.size(); ++i) {
      const HeadId id = effects.heads[i].id;
      CAPTURE(config.task.name, layers[static_cast<std::size_t>(id.layer)].name(), id.head);
      const double whole = loss_of(effects.baseline);
      // No cells: the mean, which ablation measures, too.
      const CellEffect none = test(position(1000), i, {.verdict = Verdict::important, .in_loss = true});
      CHECK_THAT(none.whole, WithinAbs(whole, kLossError));
      CHECK_THAT(none.mean - none.whole, WithinAbs(effects.heads[i].mean.capped_loss.mean, kLossError));
      CHECK_THAT(none.alone, WithinAbs(none.mean, kLossError));
      CHECK(none.without.empty());
      // A second test, without the head without which it is worth most, counts only if the cells carry the effect there.
      if (effects.heads.size() > 1) {
        JointReport joint;
        PairEffect& pair = joint.pairs.emplace_back();
        pair.heads = {id, effects.heads[i == 0 ? 1 : 0].id};
        pair.worth_loss = {1000, 0};
        const CellEffect again =
            test(position(1000), i, {.verdict = Verdict::important, .in_loss = true}, joint);
        CHECK(again.without.empty());
        CHECK(again.mean == none.mean);
      }
      const CellEffect some = test(position(0), i, {.verdict = Verdict::important, .in_loss = true});
      CHECK(std::abs(some.alone - none.alone) > kLossError);
      if (config.model.kind == ModelKind::recurrent && config.model.attention.score == Score::additive) {
        FoundPattern uniform = position(0);
        uniform.score = "entropy";
        const CellEffect all = test(uniform, i, {.verdict = Verdict::important, .in_loss = true});
        CHECK_THAT(all.alone, WithinAbs(all.whole, kLossError));
      }
      if (effects.heads.size() == 1) continue;
      // A backup for another head: all of it without that one.
      const auto heads = static_cast<std::size_t>(config.model.heads);
      const std::size_t other =
          i >= heads ? i - heads : (i == 0 ? 1 : 0);  // of the attention before, if there is one
      const CellEffect backup =
          test(position(1000), i,
               {.verdict = Verdict::backup, .in_loss = true, .group = {effects.heads[other].id}});
      CHECK_THAT(backup.whole - whole, WithinAbs(effects.heads[other].zero.capped_loss.mean, kLossError));
      CHECK_THAT(backup.alone, WithinAbs(backup.mean, kLossError));
      CHECK(std::abs(backup.mean - none.mean) > kLossError);
      REQUIRE(backup.without.size() == 1);
      // The same as in a model whose other head is silent.
      const CellEffect within = test(
          position(0), i, {.verdict = Verdict::backup, .in_loss = true, .group = {effects.heads[other].id}});
      trained.silence(evaluator.model().parameters(), effects.heads[other].id);
      const CellEffect silent = test(position(0), i, {.verdict = Verdict::important, .in_loss = true});
      trained.give();
      CHECK_THAT(within.whole, WithinAbs(silent.whole, kLossError));
      CHECK_THAT(within.mean, WithinAbs(silent.mean, kLossError));
      CHECK_THAT(within.alone, WithinAbs(silent.alone, kLossError));
    }
  }
}

TEST_CASE("of several kinds the one that a head has and whose cells keep most names it", "[inspect]") {
  const hand_made::HandMade made = behind_boundary();
  Evaluator evaluator(made.config);
  evaluator.select(Split::test, 60);
  hand_made::give(made, evaluator);
  const EffectsReport effects = measure_effects(evaluator);
  const std::vector<HeadVerdict> verdicts(2, {.verdict = Verdict::important});
  const auto chosen = [&](bool has_second) {
    FoundPattern second = position(2);  // carries the effect, unlike the boundary
    second.is_rival = !has_second;
    const std::vector<std::vector<FoundPattern>> patterns{{position(0), position(0), second}, {}};
    return measure_cells(evaluator, patterns, verdicts, effects, {})[0].value();
  };
  CHECK(chosen(true).pattern.at == 2);
  CHECK(chosen(true).carried == Carried::yes);
  CHECK(chosen(false).pattern.at == 0);
  CHECK(chosen(false).carried == Carried::no);
}

TEST_CASE("half of what a head does is the bound, for its good and for its harm", "[inspect]") {
  constexpr std::int64_t kSequences = 400;
  // Returns a result with one answer a sequence, of which a share is right, and wrong ones have a capped loss of 2.
  const auto result = [&](double share) {
    EvalResult out;
    out.accuracy = share;
    for (std::int64_t i = 0; i < kSequences; ++i) {
      const bool right = static_cast<double>(i) < share * kSequences;
      out.per_sequence.push_back({right ? 0.0 : 2.0, 1, right ? 1 : 0, right ? 0.0 : 2.0});
    }
    return out;
  };
  EffectScale scale;
  scale.smallest_accuracy = 0.02;
  scale.smallest_loss = 0.04;
  scale.bounds = {2, 1};
  const auto carried = [&](double whole, double mean, double alone, HeadVerdict verdict) {
    return compare_cells(result(whole), result(mean), result(alone), verdict, scale);
  };
  for (const bool in_loss : {false, true}) {
    CAPTURE(in_loss);
    const HeadVerdict important{.verdict = Verdict::important, .in_loss = in_loss},
        harmful{.verdict = Verdict::harmful, .in_loss = in_loss};
    CHECK(carried(0.9, 0.3, 0.9, important).carried == Carried::yes);
    CHECK(carried(0.9, 0.3, 0.7, important).carried == Carried::yes);
    CHECK(carried(0.9, 0.3, 0.605, important).carried == Carried::open);
    CHECK(carried(0.9, 0.3, 0.5, important).carried == Carried::no);
    CHECK(carried(0.9, 0.895, 0.3, important).carried == Carried::constant);
    CHECK(carried(0.6, 0.9, 0.6, important).carried == Carried::constant);  // its mean is better than itself
    CHECK(carried(0.3, 0.9, 0.3, harmful).carried == Carried::yes);
    CHECK(carried(0.3, 0.9, 0.9, harmful).carried == Carried::no);
    const CellEffect effect = carried(0.9, 0.3, 0.75, important);
    std::vector<double> changes;
    for (std::int64_t i = 0; i < kSequences; ++i) {
      const auto right = [&](double share) {
        return static_cast<double>(i) < share * kSequences ? 1.0 : 0.0;
      };
      const double change = right(0.75) - (right(0.9) + right(0.3)) / 2;
      changes.push_back(in_loss ? -2 * change : change);
    }
    const std::vector<double> labels(kSequences, 1);
    const Interval plain =
        BoundedMean(changes, labels, 1, {in_loss ? -2.0 : -1.0, in_loss ? 2.0 : 1.0}).interval();
    CHECK_THAT(effect.interval.low, WithinAbs(plain.low, 1e-9));
    CHECK_THAT(effect.interval.high, WithinAbs(plain.high, 1e-9));
    CHECK_THAT(effect.kept(), WithinAbs(0.75, 1e-12));
    CHECK_THAT(effect.whole, WithinAbs(in_loss ? 0.2 : 0.9, 1e-12));
    CHECK((effect.interval.low < (in_loss ? -0.3 : 0.15) && effect.interval.high > (in_loss ? -0.3 : 0.15)));
  }
}
