#include "program/reproduce/verdict.h"

#include <algorithm>
#include <cmath>

#include "program/reproduce/measure.h"
#include "thimble/train/statistics.h"

namespace thimble {

namespace {

Json number(double x) { return std::isinf(x) ? Json("never") : std::isnan(x) ? Json() : Json(x); }

Json runs_json(const Experiment& experiment) {
  Json out = Json::array();
  for (const ExperimentRun& run : experiment.runs) {
    Json evaluations = Json::object();
    for (const Evaluation& evaluation : run.evaluations) evaluations[evaluation.name] = evaluation.overrides;
    out.push_back({{"name", run.name},
                   {"config", run.setting.file},
                   {"overrides", run.setting.overrides},
                   {"evaluate", evaluations}});
  }
  return out;
}

}  // namespace

std::string_view name(ExperimentVerdict verdict) {
  constexpr std::string_view kNames[] = {"PASS", "FAIL", "NOT SHOWN"};
  return kNames[static_cast<std::size_t>(verdict)];
}

ExperimentVerdict judge_conditions(const std::vector<std::vector<bool>>& holds, bool complete) {
  const auto on_all = [](const std::vector<bool>& seeds) { return std::ranges::count(seeds, false) == 0; };
  const auto on_none = [](const std::vector<bool>& seeds) { return std::ranges::count(seeds, true) == 0; };
  if (!complete) return ExperimentVerdict::not_shown;
  if (std::ranges::any_of(holds, on_none)) return ExperimentVerdict::fail;
  return std::ranges::all_of(holds, on_all) ? ExperimentVerdict::pass : ExperimentVerdict::not_shown;
}

Json to_json(const ExperimentResult& result) {
  const Experiment& experiment = result.experiment;
  Json values = Json::array(), conditions = Json::array();
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const Spread all = spread(result.values[i]);
    Json seeds = Json::array();
    for (const double x : result.values[i]) seeds.push_back(number(x));
    values.push_back({{"name", experiment.values[i].name},
                      {"min", number(all.min)},
                      {"median", number(all.median)},
                      {"max", number(all.max)},
                      {"count", all.count},
                      {"seeds", seeds}});
  }
  for (std::size_t i = 0; i < result.conditions.size(); ++i)
    conditions.push_back(
        {{"condition", describe(experiment.conditions[i])}, {"seeds", result.conditions[i]}});
  return {{"name", experiment.name},
          {"file", experiment.file},
          {"statement", experiment.statement},
          {"source", experiment.source},
          {"kind", kExperimentKinds[static_cast<std::size_t>(experiment.kind)]},
          {"quick", experiment.quick},
          {"verdict", name(result.verdict)},
          {"seconds", result.seconds},
          {"seeds", experiment.seeds},
          {"runs", runs_json(experiment)},
          {"values", values},
          {"conditions", conditions},
          {"problems", result.problems}};
}

}  // namespace thimble
