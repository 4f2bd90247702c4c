// Numerical derivatives that state their error, and the verdict on an analytic one.
#pragma once

#include <cmath>
#include <functional>

#include "thimble/engine/gradcheck_result.h"

namespace thimble {

// A derivative and a bound of its error. An infinite error: there is no estimate.
struct Derivative {
  double value = 0;
  double error = HUGE_VAL;
};

// A function of one number, whose derivative at 0 is estimated.
struct Line {
  std::function<double(double)> f;
  double center = 0;    // f(0)
  double rounding = 0;  // the standard deviation of the rounding error of a value of f
  double unit = 1;      // steps are multiples of it
};

// Estimates f'(0) from `rows` (2 to 5) central differences with steps h, h / 2, h / 4, ... units, extrapolated to a step
// of 0 (Ridders, "Accurate computation of F'(x) and F'(x) F''(x)", 1982). Each cell of the tableau has as error its
// distance to the cells that it was made from, of two rows to that of the smaller step alone, and three standard
// deviations of what rounding does to it; the cell with the least is returned. If f has a kink, the slopes of both sides
// differ, which is an error, too, as far as it exceeds that of a tableau of its own.
Derivative differentiate(const Line& line, double h, int rows);

// A verdict and the estimate that it rests on.
struct Decision {
  GradcheckVerdict verdict = GradcheckVerdict::undecided;
  Derivative numeric;
};

// Compares an analytic derivative with two differences of steps near 3e-4 units and, where these leave it open and
// `thorough`(the estimate) holds, with tableaux of steps from 4e-3 units down. `least` is added to errors: the rounding
// of the analytic derivative itself.
//   ok     within ten errors of an estimate, and error and distance add up to at most 1e-5 size, which is above 0
//   wrong  two tableaux of different steps agree within their errors, each is more than ten errors away, and differences
//          of all smaller steps at which rounding cannot hide the distance are within a fifth of it of the tableaux
Decision decide(const Line& line, double analytic, double size, double least,
                const std::function<bool(const Derivative&)>& thorough);

}  // namespace thimble
