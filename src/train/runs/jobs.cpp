#include "train/runs/jobs.h"

#include <fmt/ranges.h>

#include <set>

#include "engine/ops/gradcheck_cases.h"
#include "thimble/engine/error.h"
#include "thimble/train/run.h"
#include "train/files/progress.h"
#include "train/step/cost.h"
#include "train/step/evaluator.h"
#include "train/step/references.h"

namespace thimble {

template <>
EvalResult run_evaluation<Real>(const ModelSource& source, Split split, std::int64_t limit,
                                std::vector<Prediction>* predictions) {
  Evaluator evaluator(source.config, *source.open());
  EvalResult result = evaluator.evaluate(split, limit, predictions);
  result.references = ReferenceModels(evaluator.dataset()).losses(split, result.sequences);
  return result;
}

template <>
std::vector<GradcheckResult> run_model_check<Real>(const OpenConfig& config) {
  const Dataset dataset = make_dataset(config);
  const std::unique_ptr<Model> model = make_model(config.model, dataset);
  model->init(config.train.seed);
  // Biases of 0 and norm weights of 1, the initial values, could hide a missing term.
  const Random random(config.train.seed, Stream::gradcheck);
  std::uint64_t i = 0;
  for (Real& x : model->parameters().values()) x += static_cast<Real>(0.1 * random.normal(i++, 0, 9));

  Batch batch;
  dataset.fill(Split::train, 0, kModelCheckSequences, batch);
  const ForwardOptions options{
      .training = true, .seed = config.train.seed, .step = 0, .first_sample = 0, .hooks = nullptr};
  const auto loss = [&](Tape& tape) {
    return cross_entropy((*model)(tape, labeled_input(batch), options), batch.row_labels,
                         {.smoothing = static_cast<Real>(config.train.label_smoothing)});
  };
  ProgressCounter progress("checking gradients", 1);
  return gradcheck(model->parameters(), loss, 1, [&](double share) { progress.advance(share); });
}

template <>
std::vector<GradcheckResult> run_op_checks<Real>(const std::string& only) {
  std::vector<GradcheckResult> results;
  std::set<std::string> ops;
  const std::vector<GradcheckCase> cases = gradcheck_cases();
  ProgressCounter progress("checking gradients", static_cast<double>(cases.size()));
  for (const GradcheckCase& c : cases) {
    progress.advance();
    ops.insert(c.op);
    if (!only.empty() && c.op != only) continue;
    const std::string name = c.variant.empty() ? c.op : fmt::format("{} ({})", c.op, c.variant);
    for (GradcheckResult& result : gradcheck(name, c.f, c.inputs)) results.push_back(std::move(result));
  }
  require<ConfigError>(!results.empty(), "gradcheck: unknown op {}; must be one of {}", only,
                       fmt::join(ops, ", "));
  return results;
}

}  // namespace thimble
