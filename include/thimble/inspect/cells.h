// Whether the cells of a pattern carry the effect of a head: a head may attend to keys that do not matter. The cells of
// a query are its visible keys that have the pattern; a query without one has no cells.
//
// Three results on the same sequences are compared, of the model, or of the model without the heads `without`:
//   whole   the head is as it is
//   mean    z_h(i) is replaced by its mean at position i, over the sequences that have the position
//   alone   z_h(i) is replaced by c(i) + the mean of z_h - c at position i, where c(i) is the sum of A[i,j] v_j over the
//           cells of query i, not renormalized; of a uniform head c(i) is the mean of v_j over all visible keys
// The cells keep (alone - mean) / (whole - mean) of what the head does beyond its mean. They carry its effect if that is
// shown to be more than half: if the 95 % interval of alone - (whole + mean) / 2, with the sign of the effect, is above 0.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thimble/inspect/effects.h"
#include "thimble/inspect/patterns.h"
#include "thimble/inspect/verdict.h"
#include "thimble/train/json.h"

namespace thimble {

enum class Carried {
  yes,
  no,
  open,      // neither is shown
  constant,  // with its mean in its place the model loses nothing of interest
};

// The test of a head's pattern. A task target of several kinds has the name of one of them if its cells carry the effect
// and alone keep more of it than those of each other kind, by the 95 % interval of the difference.
struct CellEffect {
  FoundPattern pattern;
  Carried carried = Carried::open;
  bool in_loss = false;  // whether the capped loss is compared, not the accuracy
  double whole = 0, mean = 0, alone = 0;
  Interval interval;  // of alone - (whole + mean) / 2
  double p = 1;       // of a difference of 0
  std::vector<std::string> without{};

  double kept() const { return (alone - mean) / (whole - mean); }
};

// Compares the results of the same sequences in the measure that decided the verdict.
CellEffect compare_cells(const EvalResult& whole, const EvalResult& mean, const EvalResult& alone,
                         const HeadVerdict& verdict, const EffectScale& scale);

// {"pattern", "carried", "measure", "whole", "mean", "alone", "interval", "without"}
Json to_json(const CellEffect&);

}  // namespace thimble
