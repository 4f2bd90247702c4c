// Confidence intervals and tests for the effects of interventions.
#pragma once

#include <span>
#include <vector>

#include "thimble/train/bounded_mean.h"
#include "thimble/train/json.h"

namespace thimble {

// The mean of a change per label that has no bounds, with an approximate 95 % interval.
struct MeanChange {
  double mean = 0;
  Interval interval;
};

// Returns sum_i changes[i] / sum_i labels[i], where sequences i are independent draws, with labels[i] labels each. The
// interval is that of the studentized mean after Hall's cubic transformation, which removes its skewness (P. Hall, "On the
// removal of skewness by transformation", Journal of the Royal Statistical Society B 54, 1992), with the quantiles of
// Student's t. It is approximate, as no interval of an unbounded mean is valid for every distribution (R. R. Bahadur and
// L. J. Savage, Annals of Mathematical Statistics 27, 1956): it decides nothing. Of fewer than two sequences it is unknown
// (NaN). Throws ShapeError when sizes differ or there is no sequence.
MeanChange mean_change(std::span<const double> changes, std::span<const double> labels);

// Returns p-values that are corrected for their number, in their order (S. Holm, "A simple sequentially
// rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979): the probability of any
// false rejection among those below 0.05 is at most 5 %.
std::vector<double> holm(std::span<const double> p);

Json to_json(const Interval&);  // [low, high], null where unknown

}  // namespace thimble
