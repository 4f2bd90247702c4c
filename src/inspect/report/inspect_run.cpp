#include "inspect/report/inspect_run.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "inspect/cells/measure_cells.h"
#include "inspect/circuits/circuit_observer.h"
#include "inspect/circuits/logit_lens.h"
#include "inspect/effects/joint_effects.h"
#include "inspect/effects/measure_effects.h"
#include "inspect/scores/position_losses.h"
#include "inspect/scores/score_observer.h"
#include "inspect/trace/trace_observer.h"
#include "thimble/train/run.h"

namespace thimble {

namespace {

// Returns whether sequences of equal lengths, of the first ones of a split, all have the same alignments of that kind, and some
// lengths several sequences: what a head follows then is positions.
bool is_positional(const Evaluator& evaluator, Split split, std::int64_t sequences, std::int32_t kind) {
  using Cells = std::set<std::pair<std::int32_t, std::int32_t>>;
  std::map<std::pair<std::size_t, std::size_t>, Cells> of_lengths;
  bool is_repeated = false;
  Example example;
  for (std::int64_t i = 0; i < sequences; ++i) {
    evaluator.dataset().example(split, i, example);
    Cells cells;
    for (const Alignment& a : example.attends)
      if (a.kind == kind) cells.emplace(a.query, a.key);
    const auto [first, is_new] = of_lengths.try_emplace({example.input.size(), example.target.size()}, cells);
    if (first->second != cells) return false;
    is_repeated |= !is_new;
  }
  return is_repeated;
}

// Tests each kind of task targets, which hypotheses are, for each head of the report.
void test_hypotheses(Evaluator& evaluator, std::span<const HeadVerdict> verdicts,
                     const EffectsReport& effects, InspectReport& report) {
  const std::vector<std::string_view>& kinds = evaluator.dataset().source().kinds();
  const bool shuffled = evaluator.dataset().source().shuffles();
  std::vector<std::vector<FoundPattern>> patterns(kinds.size());
  std::vector<std::vector<std::optional<CellEffect>>> cells;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    std::vector<std::vector<FoundPattern>> tested;
    const auto number = static_cast<std::int32_t>(kind);
    const bool positional = is_positional(evaluator, Split::test, effects.baseline.sequences, number) &&
                            (shuffled || is_positional(evaluator, Split::varied, kVariedSequences, number));
    for (const HeadReport& head : report.heads) {
      const auto score = std::ranges::find_if(head.scores, [&](const HeadScore& one) {
        return one.name == "task_target" && one.kind == (kinds.size() > 1 ? kinds[kind] : "");
      });
      FoundPattern found = hypothesis_pattern(*score, positional, shuffled);
      found.name = kinds[kind];
      tested.emplace_back(found.is_rival ? 0 : 1, found);
      patterns[kind].push_back(std::move(found));
    }
    cells.push_back(measure_cells(evaluator, tested, verdicts, effects, report.joint));
  }
  std::vector<Effect> zero;
  for (const HeadEffects& head : effects.heads) zero.push_back(head.zero);
  std::vector<std::vector<HypothesisTest>> tests = judge_hypotheses(patterns, cells, verdicts, zero);
  for (std::size_t i = 0; i < tests.size(); ++i) {
    HeadReport& head = report.heads[i];
    head.hypotheses = std::move(tests[i]);
    const auto kept = [](const HypothesisTest& test) {
      return test.answer == Confirmed::yes ? test.cells->kept() : 0;
    };
    const auto best = std::ranges::max_element(head.hypotheses, {}, kept);
    if (kept(*best) <= 0) continue;
    head.cells = best->cells;  // what is confirmed names the head
    head.label = label_head(head.scores, zero[i], verdicts[i], head.cells);
  }
}

}  // namespace

template <>
InspectReport run_inspection<Real>(const ModelSource& model, const InspectOptions& options) {
  Evaluator evaluator(model.config, *model.open());
  evaluator.select(Split::test, options.sequences);
  InspectReport report;
  report.config = model.config;
  report.tokens = evaluator.dataset().names();
  report.weights_hash = evaluator.model().parameters().hash();
  report.length = evaluator.dataset().length();
  report.source_length = evaluator.dataset().source_length();

  // Observed passes count twice, for the work of the observers.
  ProgressCounter progress("analyzing heads", effect_passes(evaluator) + joint_passes(evaluator) +
                                                  lens_passes(evaluator) + 4 * evaluator.observe_cost() +
                                                  cell_passes(evaluator));
  evaluator.report_to(progress);
  EffectsReport effects = measure_effects(evaluator, options.smallest_effect);
  report.joint = measure_joint_effects(evaluator, effects);
  report.logit_lens = logit_lens(evaluator, effects.baseline);
  ScoreObserver trained(evaluator, true), initial(evaluator);
  CircuitObserver circuit_observer(evaluator);
  TraceObserver examples(
      evaluator.model(), evaluator.dataset(), options.examples,
      [&](const ForwardTrace& trace) { report.examples.push_back(trace); }, false, true);
  PositionLosses losses(report.length, evaluator.dataset().vocabulary());
  Combined observers{&trained, &circuit_observer, &examples};
  Combined with_losses{&observers, &losses};
  const bool is_text = evaluator.dataset().task().predicts_next;
  evaluator.observe(is_text ? with_losses : observers);
  if (is_text) report.position_losses = losses.means();
  progress.advance(evaluator.observe_cost());
  CircuitReport circuits = circuit_observer.finish();
  std::optional<ScoreObserver> varied;
  if (evaluator.dataset().size(Split::varied) > 0) {
    evaluator.select(Split::varied, kVariedSequences);
    evaluator.observe(varied.emplace(evaluator, true));
    evaluator.select(Split::test, options.sequences);
  }
  const std::span<Real> values = evaluator.model().parameters().values();
  const std::vector<Real> weights(values.begin(), values.end());
  evaluator.model().init(model.config.train.seed);
  evaluator.observe(initial);
  std::ranges::copy(weights, values.begin());
  progress.advance(evaluator.observe_cost());

  const std::vector<HeadVerdict> verdicts =
      judge(effects.heads, effects.scale, report.joint, evaluator.model().attention_layers());
  std::vector<std::vector<FoundPattern>> patterns(effects.heads.size());
  for (std::size_t i = 0; i < effects.heads.size(); ++i) {
    HeadReport& head = report.heads.emplace_back();
    head.scores = trained.scores(i);
    set_at_init(head.scores, initial.scores(i, head.scores));
    if (varied) set_varied(head.scores, varied->scores(i, head.scores));
    head.mean_weights = trained.heads()[i].weights().means();
    head.effects = effects.heads[i];
    head.circuits = std::move(circuits.heads[i]);
    if (const FoundPattern found = pattern_of(head.scores); !found.name.empty())
      patterns[i] = alternatives(found, head.scores);
  }
  const std::vector<std::optional<CellEffect>> cells =
      measure_cells(evaluator, patterns, verdicts, effects, report.joint);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    HeadReport& head = report.heads[i];
    head.cells = cells[i];
    head.label = label_head(head.scores, head.effects.zero, verdicts[i], head.cells);
  }
  if (!options.hypotheses.empty()) test_hypotheses(evaluator, verdicts, effects, report);
  for (std::size_t i = 0; i < report.heads.size(); i += static_cast<std::size_t>(model.config.model.heads))
    report.mean_counts.push_back(trained.heads()[i].weights().counts());
  report.baseline = effects.baseline;
  report.scale = effects.scale;
  report.unpaired = effects.unpaired;
  report.cumulative_ablation = std::move(effects.cumulative_ablation);
  report.attribution = std::move(circuits.attribution);
  report.rollout = std::move(circuits.rollout);
  return report;
}

template <>
AblationReport run_ablation<Real>(const ModelSource& model, std::span<const HeadId> heads,
                                  std::int64_t sequences) {
  Evaluator evaluator(model.config, *model.open());
  evaluator.select(Split::test, sequences);
  return measure_ablation(evaluator, heads);
}

}  // namespace thimble
