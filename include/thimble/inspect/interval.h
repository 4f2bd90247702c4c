// Confidence intervals and tests for the effects of interventions.
#pragma once

#include <span>
#include <vector>

#include "thimble/train/json.h"

namespace thimble {

// A 95 % confidence interval.
struct Interval {
  double low = 0, high = 0;
  bool contains(double x) const { return low <= x && x <= high; }
};

// The mean of a change per label.
struct MeanChange {
  double mean = 0;
  Interval interval;
  double p = 1;  // two-sided p-value of no change; below 0.05 where the interval does not contain 0
};

// Returns sum_i changes[i] / sum_i labels[i], where sequences i are independent draws, with labels[i] labels
// each. The interval and the p-value are those of the studentized mean after Hall's cubic transformation,
// which removes its skewness (P. Hall, "On the removal of skewness by transformation", Journal of the Royal
// Statistical Society B 54, 1992), with the quantiles of Student's t. Like a bootstrap-t interval, it covers
// rare and skewed changes, where percentiles of bootstrap means are too narrow, but it needs no random
// numbers. Of fewer than two sequences, the interval is unknown (NaN) and p is 1. Throws ShapeError when
// sizes differ or there is no sequence.
MeanChange mean_change(std::span<const double> changes, std::span<const double> labels);

// Returns p-values that are corrected for their number, in their order (S. Holm, "A simple sequentially
// rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979): the probability of any
// false rejection among those below 0.05 is at most 5 %.
std::vector<double> holm(std::span<const double> p);

Json to_json(const Interval&);  // [low, high], null where unknown

}  // namespace thimble
