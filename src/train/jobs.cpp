#include "train/jobs.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "thimble/core/error.h"
#include "thimble/ops/gradcheck_cases.h"
#include "thimble/train/checkpoint.h"
#include "thimble/train/cost.h"
#include "thimble/train/trainer.h"
#include "train/stopwatch.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

// A line of metrics.jsonl; the time comes last, since all the rest is the same in every run.
template <class Report>
nlohmann::ordered_json metrics_line(std::int64_t step, std::string_view split, const Report& report,
                                    double seconds) {
  nlohmann::ordered_json line{{"step", step}, {"split", split}};
  line.update(to_json(report));
  line["seconds"] = seconds;
  return line;
}

}  // namespace

TrainResult run_training(const Config& config, const TrainOptions& options) {
  const Stopwatch watch;
  Trainer trainer(config);
  TrainObserver silent;
  TrainObserver& observer = options.observer != nullptr ? *options.observer : silent;
  std::optional<RunWriter> run;
  if (!options.directory.empty()) run.emplace(options.directory, config);

  TrainResult result;
  result.parameters = static_cast<std::int64_t>(trainer.model().parameters().count());
  result.threads = trainer.threads();
  result.directory = options.directory;
  observer.on_start(config, result);
  const bool validates = config.data.validation > 0;
  const std::int64_t every = config.train.evaluate_every, last = config.train.steps;
  for (std::int64_t step = 1; step <= last; ++step) {
    result.train = trainer.step();
    result.steps = step;
    observer.on_step(result.train);
    if (run) run->metrics(metrics_line(step, "train", result.train, watch.seconds()));
    if (validates && (step == last || (every > 0 && step % every == 0))) {
      result.validation = trainer.evaluate(Split::validation);
      observer.on_validation(step, *result.validation);
      if (run) run->metrics(metrics_line(step, "validation", *result.validation, watch.seconds()));
    }
  }
  if (config.data.test > 0) {
    result.test = trainer.evaluate(Split::test);
    if (run) run->metrics(metrics_line(last, "test", *result.test, watch.seconds()));
  }
  result.weights_hash = trainer.model().parameters().hash();
  if (run) {
    save_weights(run->weights_path(), trainer.model().parameters(),
                 {{"format", "thimble 1"},
                  {"step", std::to_string(result.steps)},
                  {"weights_hash", result.weights_hash},
                  {"config", to_yaml(config)}});
  }
  result.seconds = watch.seconds();
  if (run) run->finish(result);
  return result;
}

SplitReport run_evaluation(const ModelSource& source, Split split) {
  Trainer trainer(source.config);
  load_weights(source.weights, trainer.model().parameters());
  return trainer.evaluate(split);
}

std::vector<GradcheckResult> run_model_check(const Config& config) {
  const Dataset dataset = make_dataset(config);
  Transformer model(config.model, dataset.vocabulary(), dataset.length());
  model.init(config.train.seed);
  // Training starts biases at 0 and norms at 1, where a forgotten term may not show.
  const Random random(config.train.seed, Stream::gradcheck);
  std::uint64_t i = 0;
  for (Real& x : model.parameters().values()) x += static_cast<Real>(0.1 * random.normal(i++, 0, 9));

  Batch batch;
  dataset.fill(Split::train, 0, kModelCheckSequences, batch);
  const Pass pass{
      .training = true, .seed = config.train.seed, .step = 0, .first_sample = 0, .hooks = nullptr};
  return gradcheck(model.parameters(), [&](Tape& tape) {
    return cross_entropy(labelled_logits(model, tape, batch, pass), batch.row_labels,
                         {.smoothing = static_cast<Real>(config.train.label_smoothing)});
  });
}

std::vector<GradcheckResult> run_op_checks(const std::string& only) {
  std::vector<GradcheckResult> results;
  std::set<std::string> ops;
  for (const GradcheckCase& c : gradcheck_cases()) {
    ops.insert(c.op);
    if (!only.empty() && c.op != only) continue;
    const std::string name = c.variant.empty() ? c.op : fmt::format("{} ({})", c.op, c.variant);
    for (GradcheckResult& result : gradcheck(name, c.f, c.inputs)) results.push_back(std::move(result));
  }
  require<ConfigError>(!results.empty(), "gradcheck: there is no op {}; there are {}", only,
                       fmt::join(ops, ", "));
  return results;
}

}  // namespace thimble::inline THIMBLE_PRECISION
