// Confidence intervals and tests of effects that have bounds, such as changes of accuracy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace thimble {

// A 95 % confidence interval, or the bounds of a value.
struct Interval {
  double low = 0, high = 0;
  bool contains(double x) const { return low <= x && x <= high; }
};

// The mean change of an answer, sum_i x_i / sum_i L_i, where sequences i are independent draws with L_i answers each,
// which change by x_i together. An answer changes by at least bounds.low and at most bounds.high, and no sequence of
// the data has more than `most` answers. Everything rests on
//   F(b, t) = P(sum_i w_i (x_i - t L_i) + w_0 most (b - t) <= 0),   w_i independent exponential variables:
// the Bayesian bootstrap with one sequence more, all of whose answers change by the bound b (N. Gaffke, "Three test
// statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable", Mathematical Methods of
// Statistics 14, 2005; E. Learned-Miller and P. S. Thomas, "A new confidence interval for the mean of a bounded random
// variable", arXiv 1905.06208). No random numbers are drawn: the same bits on every CPU, for any number of threads.
class BoundedMean {
 public:
  // Throws ShapeError when sizes differ. Changes beyond the bounds, by rounding, are taken to be at them.
  BoundedMean(std::span<const double> changes, std::span<const double> labels, double most, Interval bounds);

  // Without an answer everything is unknown: the mean and the interval are NaN, p is 1, the others are false.
  bool is_known() const { return labels_ > 0; }
  double mean() const;
  // Returns the 95 % interval: F(bounds.low, low) = 0.025 and F(bounds.high, high) = 0.975. With one answer a sequence,
  // the end on the side of the change is that of Clopper and Pearson.
  Interval interval() const;
  // Return whether the lower end of the interval is above t, and the upper one below it.
  bool is_above(double t) const;
  bool is_below(double t) const;
  // Returns the two-sided p-value of a mean of t, from the mean of both F; with one answer a sequence McNemar's mid-p.
  double p(double t = 0) const;

 private:
  // Equal sequences.
  struct Group {
    double change, labels, count;
  };

  double f(double bound, double t) const;
  double end(double bound, double share) const;

  std::vector<Group> groups_;
  double sum_ = 0, labels_ = 0, most_;
  Interval bounds_;
};

}  // namespace thimble
