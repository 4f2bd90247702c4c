// Labels of heads: what a head attends to, more than chance and more than at initialization, together with
// the verdict on its effect.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thimble/inspect/cells.h"
#include "thimble/inspect/patterns.h"
#include "thimble/inspect/scores.h"
#include "thimble/inspect/verdict.h"

namespace thimble {

struct Label {
  std::string name;  // "mirror", "previous token", "offset -3", "position 0", ...; "" without a pattern
  Verdict verdict = Verdict::unused;
  std::string sentence;         // the label with its evidence
  std::vector<HeadId> group{};  // of a backup, the other heads of its group
  std::string summary{};        // the label in plain words, see summarize
};

// Labels a head from all its scores, with at_init where it is known, its zero ablation, the verdict on its effects, and
// the test of its pattern, see pattern_of. A head that changes something has the name of a pattern only if the cells of
// the pattern carry its effect. A head that costs nothing is redundant if it has a pattern, and unused otherwise; no head
// has a label on too few queries, or in a model that is no better than chance.
Label label_head(std::span<const HeadScore> scores, const Effect& zero, const HeadVerdict& effects,
                 const std::optional<CellEffect>& cells = {});

// Whether a head attends by a hypothesis, and the weights on these keys carry its effect.
enum class Confirmed { yes, no, open };

// The answer to a hypothesis for a head. yes: it has the pattern, see hypothesis_pattern, and its cells carry its effect with p at
// most kErrorRate, corrected for all heads and hypotheses of a call (Holm). no: it does not have the pattern, costs nothing of
// interest, acts like a constant, or the cells are shown to carry less than half.
struct HypothesisTest {
  std::string name;
  Confirmed answer = Confirmed::open;
  double p = 1;
  std::optional<CellEffect> cells{};
  std::string sentence{};
};

// Returns the tests of hypotheses, by head. `patterns`: by hypothesis and head, with the hypothesis as their name; `cells`
// likewise, with nothing where a pattern was not tested.
std::vector<std::vector<HypothesisTest>> judge_hypotheses(
    std::span<const std::vector<FoundPattern>> patterns,
    std::span<const std::vector<std::optional<CellEffect>>> cells, std::span<const HeadVerdict> verdicts,
    std::span<const Effect> zero);

// {"name", "answer", "p", "cells", "sentence"}
Json to_json(const HypothesisTest&);

}  // namespace thimble
