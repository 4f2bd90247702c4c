#include "thimble/inspect/inspect.h"

#include <algorithm>

#include "inspect/circuit_watcher.h"
#include "inspect/passage_watcher.h"
#include "inspect/score_watcher.h"
#include "thimble/inspect/measure_effects.h"

namespace thimble::inline THIMBLE_PRECISION {

InspectReport run_inspection(const ModelSource& source, const InspectOptions& options);
PatchingReport run_patching(const ModelSource& source, std::int64_t base, std::int64_t from);

InspectReport run_inspection(const ModelSource& source, const InspectOptions& options) {
  Subject subject(source, Split::test, options.sequences);
  InspectReport report;
  report.config = source.config;
  report.tokens = subject.dataset().names();
  report.weights_hash = subject.model().parameters().hash();
  report.length = subject.dataset().length();
  report.source_length = subject.dataset().source_length();

  // Both watched passes count twice, for what is made of them.
  ProgressCounter progress("analyzing heads", effect_passes(subject) + 4 * subject.watch_cost());
  subject.report_to(progress);
  EffectsReport effects = measure_effects(subject);
  ScoreWatcher trained(subject), initial(subject);
  CircuitWatcher circuit_watcher(subject);
  PassageWatcher examples(subject.model(), options.examples,
                          [&](const Passage& passage) { report.examples.push_back(passage); });
  Watchers watchers{&trained, &circuit_watcher, &examples};
  subject.watch(watchers);
  progress.advance(subject.watch_cost());
  CircuitReport circuits = circuit_watcher.finish();
  subject.model().init(source.config.train.seed);
  subject.watch(initial);
  progress.advance(subject.watch_cost());

  for (std::size_t i = 0; i < effects.heads.size(); ++i) {
    HeadReport& head = report.heads.emplace_back();
    head.scores = trained.heads()[i].scores();
    set_at_init(head.scores, initial.heads()[i].scores());
    head.mean_weights = trained.heads()[i].mean_weights();
    head.effects = effects.heads[i];
    head.circuits = std::move(circuits.heads[i]);
    head.label = label_head(head.scores, head.effects.zero);
  }
  report.baseline = effects.baseline;
  report.unpaired = effects.unpaired;
  report.cumulative_ablation = std::move(effects.cumulative_ablation);
  report.attribution = std::move(circuits.attribution);
  report.rollout = std::move(circuits.rollout);
  return report;
}

PatchingReport run_patching(const ModelSource& source, std::int64_t base, std::int64_t from) {
  return patching(Subject(source, Split::test, std::max(base, from) + 1), base, from);
}

}  // namespace thimble::inline THIMBLE_PRECISION
