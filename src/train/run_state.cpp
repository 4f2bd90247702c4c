#include "train/run_state.h"

namespace thimble {

Json to_json(const RunState& s) {
  Json json{{"step", s.step},
            {"seconds", s.seconds},
            {"run", s.run},
            {"metrics_bytes", s.metrics_bytes},
            {"metrics_check", s.metrics_check},
            {"train", to_json(s.train)},
            {"best_step", s.best_step},
            {"best_loss", s.best_loss},
            {"evaluations_since_best", s.evaluations_since_best}};
  if (s.validation) json["validation"] = to_json(*s.validation);
  return json;
}

RunState run_state(const Json& json) {
  RunState s;
  json.at("step").get_to(s.step);
  json.at("seconds").get_to(s.seconds);
  s.run = json.value("run", "");
  json.at("metrics_bytes").get_to(s.metrics_bytes);
  s.metrics_check = json.value("metrics_check", "");
  json.at("best_step").get_to(s.best_step);
  json.at("best_loss").get_to(s.best_loss);
  json.at("evaluations_since_best").get_to(s.evaluations_since_best);
  const Json& train = json.at("train");
  train.at("step").get_to(s.train.step);
  train.at("loss").get_to(s.train.loss);
  train.at("accuracy").get_to(s.train.accuracy);
  train.at("sequence_accuracy").get_to(s.train.sequence_accuracy);
  train.at("learning_rate").get_to(s.train.learning_rate);
  train.at("gradient_norm").get_to(s.train.gradient_norm);
  if (!json.contains("validation")) return s;
  const Json& from = json.at("validation");
  EvalResult& to = s.validation.emplace();
  from.at("loss").get_to(to.loss);
  from.at("accuracy").get_to(to.accuracy);
  from.at("sequence_accuracy").get_to(to.sequence_accuracy);
  from.at("sequences").get_to(to.sequences);
  from.at("loss_error").get_to(to.loss_error);
  if (from.contains("chance")) {
    to.chance = from.at("chance").get<double>();
    to.accuracy_error = from.at("accuracy_error").get<double>();
  }
  if (from.contains("lowest_possible_loss")) to.lowest_loss = from.at("lowest_possible_loss").get<double>();
  if (from.contains("exact_match")) to.exact_match = from.at("exact_match").get<double>();
  if (from.contains("leak")) to.leak = from.at("leak").at("lowest_possible_loss").get<double>();
  return s;
}

bool has_target(const TargetConfig& target) { return target.accuracy > 0 || target.loss > 0; }

bool reached(const TargetConfig& target, const std::optional<EvalResult>& evaluation) {
  return has_target(target) && evaluation && evaluation->accuracy >= target.accuracy &&
         (target.loss == 0 || evaluation->loss <= target.loss);
}

std::optional<Stopped> ending(const RunState& state, const TrainConfig& train) {
  if (state.step > 0 && reached(train.target, state.validation)) return Stopped::at_target;
  if (state.step >= train.steps) return Stopped::at_last_step;
  if (train.patience > 0 && state.evaluations_since_best >= train.patience) return Stopped::out_of_patience;
  return std::nullopt;
}

}  // namespace thimble
