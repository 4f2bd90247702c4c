// What becomes of an experiment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/reproduce/experiment.h"

namespace thimble {

enum class ExperimentVerdict { pass, fail, not_shown };
std::string_view name(ExperimentVerdict);  // "PASS", "FAIL", "NOT SHOWN"

// holds[condition][seed]. PASS: every condition holds on every seed. FAIL: some condition holds on none. NOT
// SHOWN: otherwise, and whatever holds if something could not be measured.
ExperimentVerdict judge(const std::vector<std::vector<bool>>& holds, bool complete);

struct ExperimentResult {
  Experiment experiment;
  std::vector<std::vector<double>> values;    // by value and seed, NaN for what could not be measured
  std::vector<std::vector<bool>> conditions;  // by condition and seed, whether it holds
  std::vector<std::string> problems;          // why something could not be measured
  ExperimentVerdict verdict = ExperimentVerdict::not_shown;
  double seconds = 0;        // that it took, with what was trained before left out
  bool interrupted = false;  // then nothing is measured

  // Whether it counts as a success: nothing stood in the way, and a golden or control got PASS. What becomes
  // of a claim is a result either way.
  bool succeeded() const {
    return problems.empty() &&
           (experiment.kind == ExperimentKind::claim || verdict == ExperimentVerdict::pass);
  }
};

// Returns {"name", "file", "statement", "source", "kind", "quick", "verdict", "seconds", "seeds", "runs",
// "values", "conditions", "problems"}; null for what could not be measured, "never" for infinity.
Json to_json(const ExperimentResult& result);

}  // namespace thimble
