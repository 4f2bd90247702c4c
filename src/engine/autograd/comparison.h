// Compares analytic gradients of a loss with numerical ones.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/autograd/derivative.h"
#include "engine/autograd/held_signs.h"
#include "thimble/engine/gradcheck_result.h"
#include "thimble/engine/random.h"
#include "thimble/engine/real.h"
#include "thimble/engine/shape.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// A tensor of which a loss is a function, and the analytic gradient.
struct ComparedTensor {
  std::span<Real> values;  // changed and restored
  std::span<const Real> gradient;
  Shape shape;
  bool zero_gradient = false;  // it is zero by construction: differences are compared with 1
};

// Numerical derivatives of a loss, with the signs of its ReLUs held.
class Comparison {
 public:
  // `loss` computes with the values of the tensors as they are. Measures how it is rounded.
  Comparison(std::function<double()> loss, std::vector<ComparedTensor> tensors, const Random& random);

  // Returns the worst comparison of tensor k: of every element if it has at most 256, else of 64 random elements and
  // along 16 random directions. Such directions also decide a tensor of which single elements stay open. `advance` is
  // called after each planned comparison.
  GradcheckResult compare(
      std::size_t k, const std::function<void()>& advance = [] {});

  static std::int64_t planned(std::int64_t elements);  // comparisons of a tensor

 private:
  double loss();
  void measure_rounding();
  void compare_element(std::size_t k, std::int64_t at, GradcheckResult& result);
  void compare_direction(std::size_t k, std::uint32_t number, GradcheckResult& result);
  void decide_along(const Line& line, double analytic, double size, double least, const std::string& index,
                    GradcheckResult& result);
  void explain(const ComparedTensor& tensor, GradcheckResult& result) const;

  std::function<double()> loss_;
  std::vector<ComparedTensor> tensors_;
  Random random_;
  HeldSigns signs_;
  double center_ = 0, rounding_ = 0;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
