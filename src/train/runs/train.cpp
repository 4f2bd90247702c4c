// Dispatches each job to the code of its precision. This file is compiled once.
#include "thimble/train/train.h"

#include "thimble/engine/real.h"
#include "thimble/train/run.h"
#include "train/files/text/format.h"

namespace thimble {

#define THIMBLE_JOBS                                                                    \
  TrainResult run_training(const Config& config, const TrainOptions& options);          \
  EvalResult run_evaluation(const ModelSource& source, Split split, std::int64_t limit, \
                            std::vector<Prediction>* predictions);                      \
  std::vector<GradcheckResult> run_model_check(const Config& config);                   \
  std::vector<GradcheckResult> run_op_checks(const std::string& only);

inline namespace f32 {
THIMBLE_JOBS
}
namespace f64 {
THIMBLE_JOBS
}

namespace {

bool single(const Config& config) { return config.train.precision == Precision::float32; }

}  // namespace

TrainResult train(const Config& config, const TrainOptions& options) {
  // Ranks that differ in these would wait for messages that no rank sends.
  options.ranks->require_equal<ConfigError>({{"--stop-after", std::to_string(options.stop_after)},
                                             {"--resume", options.resume ? "set" : "not set"},
                                             {"run directory", options.directory.empty() ? "none" : "one"}},
                                            "start the same command for all ranks");
  return single(config) ? f32::run_training(config, options) : f64::run_training(config, options);
}

EvalResult evaluate(const ModelSource& source, Split split, std::int64_t limit,
                    std::vector<Prediction>* predictions) {
  return single(source.config) ? f32::run_evaluation(source, split, limit, predictions)
                               : f64::run_evaluation(source, split, limit, predictions);
}

std::vector<GradcheckResult> check_model(const Config& config) { return f64::run_model_check(config); }

std::vector<GradcheckResult> check_ops(const std::string& only) { return f64::run_op_checks(only); }

std::vector<std::string> shared_remarks(const Config& config, const TrainResult& result) {
  std::vector<std::string> lines;
  const auto add = [&](Split split, std::int64_t n, const std::string& file) {
    if (n == 0) return;
    const std::string why = config.task.rows == nullptr ? "the task has too few distinct inputs"
                            : file.empty()              ? "the training file has lines of the other"
                                           : fmt::format("{} has lines with the same input", file);
    lines.push_back(fmt::format("{} also occur{} in the training split: {}",
                                counted(n, fmt::format("{} sequence", split_name(split))), n == 1 ? "s" : "",
                                why));
  };
  add(Split::validation, result.shared_validation, config.task.validation_file);
  add(Split::test, result.shared_test, config.task.test_file);
  return lines;
}

}  // namespace thimble
