// Dispatches each job to the code of its precision, if its memory fits. This file is compiled once.
#include "thimble/train/train.h"

#include "thimble/files/format.h"
#include "thimble/files/version.h"
#include "thimble/train/benchmark.h"
#include "thimble/train/cost.h"
#include "thimble/train/plan.h"
#include "thimble/train/run.h"

namespace thimble {

#define THIMBLE_JOBS                                                                     \
  TrainResult run_training(const Config& config, const TrainOptions& options);           \
  Benchmark run_benchmark(const Config& config, std::int64_t warmup, std::int64_t steps, \
                          Communicator& ranks);                                          \
  EvalResult run_evaluation(const ModelSource& source, Split split, std::int64_t limit,  \
                            std::vector<Prediction>* predictions);                       \
  std::vector<GradcheckResult> run_model_check(const Config& config);                    \
  std::vector<GradcheckResult> run_op_checks(const std::string& only);                   \
  ModelPlan run_plan(const Config& config, const Batch& batch, const PlanOptions& options);

namespace f32 {
THIMBLE_JOBS
}
namespace f64 {
THIMBLE_JOBS
}

namespace {

bool single(const Config& config) { return config.train.precision == Precision::float32; }

// Throws ConfigError on all ranks when they differ in an option: they would wait for messages that no rank sends.
void require_equal_option(Communicator& ranks, const char* option, const std::string& value) {
  ranks.require_equal<ConfigError>(option, value, "start the same command for all ranks");
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

}  // namespace

std::string_view stopped_name(Stopped stopped) {
  constexpr std::string_view kNames[] = {"last step", "target", "patience", "interrupted"};
  return kNames[static_cast<std::size_t>(stopped)];
}

TrainResult train(const Config& config, const TrainOptions& options) {
  require_equal_option(*options.ranks, "--stop-after", std::to_string(options.stop_after));
  require_equal_option(*options.ranks, "--resume", options.resume ? "set" : "not set");
  require_equal_option(*options.ranks, "run directory", options.directory.empty() ? "none" : "one");
  require_memory(estimate_memory(Job::training, config, options.ranks->size()));
  return single(config) ? f32::run_training(config, options) : f64::run_training(config, options);
}

Benchmark benchmark(const Config& config, std::int64_t warmup, std::int64_t steps, Communicator& ranks) {
  require_equal_option(ranks, "--steps", std::to_string(steps));
  require_memory(estimate_memory(Job::training, config, ranks.size()));
  return single(config) ? f32::run_benchmark(config, warmup, steps, ranks)
                        : f64::run_benchmark(config, warmup, steps, ranks);
}

EvalResult evaluate(const ModelSource& source, Split split, std::int64_t limit,
                    std::vector<Prediction>* predictions) {
  const std::int64_t size = split_sizes(source.config.task, source.config.data).size(split);
  require_memory(evaluation_memory(source.config, limit > 0 && (size == 0 || limit < size) ? limit : size,
                                   predictions != nullptr));
  return single(source.config) ? f32::run_evaluation(source, split, limit, predictions)
                               : f64::run_evaluation(source, split, limit, predictions);
}

std::vector<GradcheckResult> check_model(const Config& config) {
  require_memory(estimate_memory(Job::model_check, config));
  return f64::run_model_check(config);
}

ModelPlan plan_model(const Config& config, const Batch& batch, const PlanOptions& options) {
  return single(config) ? f32::run_plan(config, batch, options) : f64::run_plan(config, batch, options);
}

std::vector<GradcheckResult> check_ops(const std::string& only) { return f64::run_op_checks(only); }

std::vector<std::string> shared_remarks(const Config& config, const TrainResult& result) {
  std::vector<std::string> lines;
  const auto add = [&](Split split, std::int64_t n, const std::string& file) {
    if (n == 0) return;
    const std::string why = config.task.table == nullptr ? "the task has too few distinct inputs"
                            : file.empty()               ? "the training file has lines of the other"
                                           : fmt::format("{} has lines with the same input", file);
    lines.push_back(fmt::format("{} also occur{} in the training split: {}",
                                counted(n, fmt::format("{} sequence", split_name(split))), n == 1 ? "s" : "",
                                why));
  };
  add(Split::validation, result.shared_validation, config.task.validation_file);
  add(Split::test, result.shared_test, config.task.test_file);
  return lines;
}

Json to_json(const StepReport& r) {
  return {{"step", r.step},
          {"loss", r.loss},
          {"accuracy", r.accuracy},
          {"sequence_accuracy", r.sequence_accuracy},
          {"learning_rate", r.learning_rate},
          {"gradient_norm", r.gradient_norm},
          {"sequences", r.sequences > 0 ? Json(r.sequences) : Json()},
          {"labels", r.labels > 0 ? Json(r.labels) : Json()}};
}

Json to_json(const EvalResult& r) {
  Json json{{"loss", r.loss},
            {"accuracy", r.accuracy},
            {"sequence_accuracy", r.sequence_accuracy},
            {"sequences", r.sequences},
            {"labels", r.labels},
            {"loss_error", or_null(r.loss_error)},
            {"accuracy_error", or_null(r.accuracy_error)}};
  if (r.chance) {
    json["chance"] = *r.chance;
    json["no_better_than_chance"] = r.accuracy_error ? Json(r.no_better_than_chance()) : Json();
  }
  if (r.lowest_loss) json["lowest_possible_loss"] = *r.lowest_loss;
  if (r.exact_match) json["exact_match"] = *r.exact_match;
  if (r.leak) json["leak"] = {{"lowest_possible_loss", *r.leak}};
  return json;
}

Json to_json(const TrainResult& r) {
  Json json{{"steps", r.steps}, {"stopped", stopped_name(r.stopped)}, {"train", to_json(r.train)}};
  if (r.validation) json["validation"] = to_json(*r.validation);
  if (r.test) json["test"] = to_json(*r.test);
  if (r.best_step > 0) json["best"] = {{"step", r.best_step}, {"loss", r.best_loss}};
  if (r.target_missed) json["target_missed"] = true;
  if (r.shared_validation > 0 || r.shared_test > 0)
    json["shared_with_training"] = {{"validation", r.shared_validation}, {"test", r.shared_test}};
  json["weights_hash"] = r.weights_hash;
  json["arithmetic"] = r.arithmetic;
  json["parameters"] = r.parameters;
  json["version"] = version();
  json["seconds"] = r.seconds;
  json["threads"] = r.threads;
  if (r.ranks > 1) json["ranks"] = r.ranks;
  if (!r.directory.empty()) json["directory"] = r.directory;
  return json;
}

}  // namespace thimble
