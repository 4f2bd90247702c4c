#include "thimble/train/train.h"

#include "train/config/with_precision.h"
#include "train/files/text/format.h"
#include "train/runs/jobs.h"

namespace thimble {

TrainResult train(const OpenConfig& config, const TrainOptions& options) {
  // Ranks that differ in these would wait for messages that no rank sends.
  options.ranks->require_equal<ConfigError>({{"--stop-after", std::to_string(options.stop_after)},
                                             {"--resume", options.resume ? "set" : "not set"},
                                             {"run directory", options.directory.empty() ? "none" : "one"}},
                                            "start the same command for all ranks");
  return with_precision(config, [&]<class R>() { return run_training<R>(config, options); });
}

EvalResult evaluate(const ModelSource& source, Split split, std::int64_t limit,
                    std::vector<Prediction>* predictions) {
  return with_precision(source.config,
                        [&]<class R>() { return run_evaluation<R>(source, split, limit, predictions); });
}

std::vector<GradcheckResult> check_model(const OpenConfig& config) { return run_model_check<double>(config); }

std::vector<GradcheckResult> check_ops(const std::string& only) { return run_op_checks<double>(only); }

std::vector<std::string> shared_remarks(const OpenConfig& config, const TrainResult& result) {
  std::vector<std::string> lines;
  const auto add = [&](Split split, const Coincidences& found, const std::string& file) {
    const std::string equal = config.source == nullptr ? "the task has too few distinct inputs"
                              : file.empty()           ? "their lines are equal"
                                             : fmt::format("{} has lines with the same input", file);
    const std::string of_windows = config.task.text.longer == LongDocuments::first
                                       ? "different documents begin alike, as far as task.length reads them"
                                       : "windows of different documents are equal";
    for (const auto& [n, why] : {std::pair(found.equal_lines, equal),
                                 {found.equal_unknown, "their inputs are equal after tokens became <unk>"},
                                 {found.equal_windows, of_windows},
                                 {found.equal_tokens, "their lines differ only in what separates tokens"}})
      if (n > 0)
        lines.push_back(fmt::format("{} also occur{} in the training split: {}",
                                    counted(n, fmt::format("{} sequence", split_name(split))),
                                    n == 1 ? "s" : "", why));
  };
  add(Split::validation, result.shared_validation, config.task.validation_file);
  add(Split::test, result.shared_test, config.task.test_file);
  return lines;
}

}  // namespace thimble
