// Results as JSON, and the state of a run back from it.

#include "thimble/core/json.h"
#include "thimble/train/run.h"

namespace thimble {

namespace {

const char* name(Stopped stopped) {
  switch (stopped) {
    case Stopped::at_last_step:
      return "last step";
    case Stopped::at_target:
      return "target";
    case Stopped::out_of_patience:
      return "patience";
    case Stopped::interrupted:
      break;
  }
  return "interrupted";
}

}  // namespace

Json to_json(const StepReport& r) {
  return {{"step", r.step},
          {"loss", r.loss},
          {"accuracy", r.accuracy},
          {"sequence_accuracy", r.sequence_accuracy},
          {"learning_rate", r.learning_rate},
          {"gradient_norm", r.gradient_norm}};
}

Json to_json(const EvalResult& r) {
  Json json{{"loss", r.loss},
            {"accuracy", r.accuracy},
            {"sequence_accuracy", r.sequence_accuracy},
            {"sequences", r.sequences},
            {"loss_error", r.loss_error}};
  if (r.chance) {
    json["chance"] = *r.chance;
    json["accuracy_error"] = r.accuracy_error;
    json["no_better_than_chance"] = r.no_better_than_chance();
  }
  if (r.lowest_loss) json["lowest_possible_loss"] = *r.lowest_loss;
  if (r.written_accuracy) json["written_accuracy"] = *r.written_accuracy;
  if (r.leak) json["leak"] = {{"lowest_possible_loss", *r.leak}};
  return json;
}

Json to_json(const TrainResult& r) {
  Json json{{"steps", r.steps}, {"stopped", name(r.stopped)}, {"train", to_json(r.train)}};
  if (r.validation) json["validation"] = to_json(*r.validation);
  if (r.test) json["test"] = to_json(*r.test);
  if (r.best_step > 0) json["best"] = {{"step", r.best_step}, {"loss", r.best_loss}};
  if (r.target_missed) json["target_missed"] = true;
  if (r.shared_validation > 0 || r.shared_test > 0)
    json["shared_with_training"] = {{"validation", r.shared_validation}, {"test", r.shared_test}};
  json["weights_hash"] = r.weights_hash;
  json["parameters"] = r.parameters;
  json["seconds"] = r.seconds;
  json["threads"] = r.threads;
  if (!r.directory.empty()) json["directory"] = r.directory;
  return json;
}

Json to_json(const RunState& s) {
  Json json{{"step", s.step},
            {"seconds", s.seconds},
            {"metrics_bytes", s.metrics_bytes},
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
  json.at("metrics_bytes").get_to(s.metrics_bytes);
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
  if (from.contains("written_accuracy")) to.written_accuracy = from.at("written_accuracy").get<double>();
  if (from.contains("leak")) to.leak = from.at("leak").at("lowest_possible_loss").get<double>();
  return s;
}

}  // namespace thimble
