#include "thimble/train/results.h"

#include <numbers>

#include "engine/core/portable_math.h"
#include "train/files/version.h"

namespace thimble {

double bits(double loss) { return loss / std::numbers::ln2; }

std::string_view stopped_name(Stopped stopped) {
  constexpr std::string_view kNames[] = {"last step", "target", "patience", "interrupted"};
  return kNames[static_cast<std::size_t>(stopped)];
}

double EvalResult::accuracy_margin() const {
  constexpr double kTail = 0.025;
  if (*accuracy_error > 0) return kInterval * *accuracy_error;
  return 1 - portable::exp(portable::log(kTail) / static_cast<double>(distinct > 0 ? distinct : sequences));
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
  if (r.distinct < r.sequences) json["distinct"] = r.distinct;
  if (r.chance) {
    json["chance"] = *r.chance;
    json["no_better_than_chance"] = r.accuracy_error ? Json(r.no_better_than_chance()) : Json();
  }
  if (r.lowest_loss) json["lowest_possible_loss"] = *r.lowest_loss;
  if (r.exact_match) json["exact_match"] = *r.exact_match;
  if (r.references) {
    const References& n = *r.references;
    json["bits"] = bits(r.loss);
    json["perplexity"] = portable::exp(r.loss);
    json["references"] = {{"unigram", n.unigram},
                          {"bigram", n.bigram},
                          {"five_gram", n.five_gram},
                          {"training_tokens", n.of},
                          {"counted", n.counted}};
  }
  if (r.leak) json["leak"] = {{"lowest_possible_loss", *r.leak}};
  return json;
}

Json to_json(const TrainResult& r) {
  Json json{{"steps", r.steps}, {"stopped", stopped_name(r.stopped)}, {"train", to_json(r.train)}};
  const auto add = [](Json& to, const std::optional<EvalResult>& validation,
                      const std::optional<EvalResult>& test, const std::string& hash) {
    if (validation) to["validation"] = to_json(*validation);
    if (test) to["test"] = to_json(*test);
    to["weights_hash"] = hash;
  };
  add(json, r.validation, r.test, r.weights_hash);
  json["result"] = r.final ? "best" : "final";
  if (r.best_step > 0) json["best"] = {{"step", r.best_step}, {"loss", r.best_loss}};
  if (r.final) {
    add(json["best"], r.validation, r.test, r.weights_hash);
    json["final"] = {{"step", r.steps}};
    add(json["final"], r.final->validation, r.final->test, r.final->weights_hash);
  }
  if (r.target_missed) json["target_missed"] = true;
  if (const std::int64_t validation = r.shared_validation.total(), test = r.shared_test.total();
      validation + test > 0)
    json["shared_with_training"] = {{"validation", validation}, {"test", test}};
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
