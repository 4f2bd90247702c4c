#include "inspect/timeline/run_series.h"

#include <cmath>

#include "inspect/scores/score_observer.h"
#include "inspect/timeline/head_log.h"
#include "inspect/trace/trace_observer.h"
#include "thimble/train/run.h"
#include "train/files/checkpoint.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

SeriesStep read_step(Evaluator& evaluator, std::int64_t step, std::int64_t examples) {
  SeriesStep out;
  out.snapshot.step = step;
  out.snapshot.sequences = evaluator.sequences();
  out.snapshot.loss = evaluator.run().loss;
  ScoreObserver scores(evaluator);
  TraceObserver traces(
      evaluator.model(), evaluator.dataset(), examples,
      [&](const ForwardTrace& trace) { out.examples.push_back(trace); }, false);
  Combined observers{&scores, &traces};
  evaluator.observe(observers);
  for (std::size_t i = 0; i < scores.heads().size(); ++i) {
    const auto [layer, head] = std::div(static_cast<std::int64_t>(i), evaluator.model().config().heads);
    HeadSnapshot::Head& entry = out.snapshot.heads.emplace_back();
    entry.id = {layer, head};
    for (const HeadScore& score : scores.heads()[i].scores())
      if (std::isfinite(score.value)) entry.scores[std::string(score.name)] = score.value;
  }
  return out;
}

}  // namespace

}  // namespace THIMBLE_PRECISION

template <>
std::vector<SeriesStep> run_series<Real>(
    const ModelSource& model,
    const std::map<std::int64_t, std::shared_ptr<const SafetensorsFile>>& checkpoints,
    std::int64_t examples) {
  Evaluator evaluator(model.config, *model.open());
  evaluator.select(Split::test, kLoggedSequences);
  ProgressCounter progress("reading checkpoints",
                           static_cast<double>(checkpoints.size() + 1) * (1 + evaluator.observe_cost()));
  evaluator.report_to(progress);
  evaluator.model().init(model.config.train.seed);
  std::vector<SeriesStep> steps{read_step(evaluator, 0, examples)};
  for (const auto& [step, file] : checkpoints) {
    load_weights(*file, evaluator.model().parameters());
    steps.push_back(read_step(evaluator, step, examples));
  }
  return steps;
}

}  // namespace thimble
