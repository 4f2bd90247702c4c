#include "thimble/train/run_state.h"

namespace thimble {

Json to_json(const RunState& s) {
  Json json{{"step", s.step},
            {"seconds", s.seconds},
            {"run", s.run},
            {"train", to_json(s.train)},
            {"best_step", s.best_step},
            {"best_loss", s.best_loss},
            {"evaluations_since_best", s.evaluations_since_best},
            {"arithmetic", s.arithmetic}};
  if (s.validation) json["validation"] = to_json(*s.validation);
  for (const auto& [step, loss] : s.stops) json["stops"].push_back({step, loss});
  return json;
}

namespace {

// Return the number of a key that is missing or null where it was not measured.
std::optional<double> number(const Json& json, const char* key) {
  return json.value(key, Json()).is_null() ? std::nullopt : std::optional(json.at(key).get<double>());
}
std::int64_t count(const Json& json, const char* key) {
  return json.value(key, Json()).is_null() ? 0 : json.at(key).get<std::int64_t>();
}

}  // namespace

RunState run_state(const Json& json) {
  RunState s;
  json.at("step").get_to(s.step);
  json.at("seconds").get_to(s.seconds);
  json.at("run").get_to(s.run);
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
  s.train.sequences = count(train, "sequences");
  s.train.labels = count(train, "labels");
  s.arithmetic = json.value("arithmetic", "");
  for (const Json& stop : json.value("stops", Json::array()))
    s.stops[stop.at(0).get<std::int64_t>()] = stop.at(1).get<double>();
  if (!json.contains("validation")) return s;
  const Json& from = json.at("validation");
  EvalResult& to = s.validation.emplace();
  from.at("loss").get_to(to.loss);
  from.at("accuracy").get_to(to.accuracy);
  from.at("sequence_accuracy").get_to(to.sequence_accuracy);
  from.at("sequences").get_to(to.sequences);
  to.labels = count(from, "labels");
  to.distinct = from.value("distinct", to.sequences);
  to.loss_error = number(from, "loss_error");
  to.accuracy_error = number(from, "accuracy_error");
  to.chance = number(from, "chance");
  to.lowest_loss = number(from, "lowest_possible_loss");
  to.exact_match = number(from, "exact_match");
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
