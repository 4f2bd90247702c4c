// Verdicts and results of experiments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "program/reproduce/experiment.h"
#include "thimble/train/json.h"

namespace thimble {

enum class ExperimentVerdict { pass, fail, not_shown };
std::string_view name(ExperimentVerdict);  // "PASS", "FAIL", "NOT SHOWN"

// Returns the verdict for holds[condition][seed]. PASS: every condition holds on every seed. FAIL: some
// condition holds on no seed. NOT SHOWN: otherwise, and always if not `complete`, when a value could not be
// measured.
ExperimentVerdict judge_conditions(const std::vector<std::vector<bool>>& holds, bool complete);

struct ExperimentResult {
  Experiment experiment;
  std::vector<std::vector<double>> values;    // by value and seed, NaN for a failed measurement
  std::vector<std::vector<bool>> conditions;  // by condition and seed, whether it holds
  std::vector<std::string> problems;          // reasons for failed measurements
  ExperimentVerdict verdict = ExperimentVerdict::not_shown;
  double seconds = 0;        // of this call, without earlier training
  bool interrupted = false;  // values and conditions are then incomplete

  // Returns whether the experiment succeeded: without problems, and with PASS for a golden or control. Either
  // verdict on a claim is a success.
  bool succeeded() const {
    return problems.empty() &&
           (experiment.kind == ExperimentKind::claim || verdict == ExperimentVerdict::pass);
  }
};

// Returns {"name", "file", "statement", "source", "kind", "quick", "verdict", "seconds", "seeds", "runs",
// "values", "conditions", "problems"}; null for a failed measurement, "never" for infinity.
Json to_json(const ExperimentResult& result);

}  // namespace thimble
