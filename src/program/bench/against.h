// Compares the speed of this program with that of another build of it.
#pragma once

#include <string>
#include <vector>

namespace thimble {

// The step times of two programs that took turns.
struct SpeedComparison {
  std::vector<double> step_ms, other_step_ms;  // median steps of this program and of the other, pair by pair
  // How many times as long the other takes, and the ends of a 95 % interval. With w the means of every two logarithms of the
  // pairs' ratios, also of one with itself, in ascending order, these are exp of the median of w, and of the third lowest
  // and the third highest w: the interval of Wilcoxon's signed-rank test for 7 pairs (95.3 %), which assumes nothing of
  // their distribution but symmetry (J. L. Hodges, E. L. Lehmann, Annals of Mathematical Statistics 34, 1963).
  double ratio = 0, low = 0, high = 0;
};

// Runs both programs with these arguments, those of `bench` without outputs, one after the other. Throws ConfigError with
// its message if one ends without a step time.
SpeedComparison compare_speed(const std::vector<std::string>& arguments, const std::string& other);

}  // namespace thimble
