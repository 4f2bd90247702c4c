// A bound on the difference between a logit and the sum of its parts that rounding explains.
//
// A rounding changes a number s by at most u |s|, where u is the unit roundoff. Partial sums of a product a b
// are at most |a| |b|, so n independent roundings give an error of about sqrt(n) u |a| |b| (Higham and Mary
// 2019, "A new approach to probabilistic rounding error analysis").
//
// d: the directions of attribution.cpp; U: the rows of the output net; w, b: weight and bias of the final
// norm; r: its scale.
//
// In the residual stream every vector x is rounded once, and each element of the output projection W z + b'
// of the heads 2 K times. An error of norm e there changes the logit by about r e max_c |d_c|. The final
// norm, the pooling and the output net round about 8 C + 2 T times, sums of at most
// |U w| r |x| + |U| |b| + |o|. The sums of attribution.cpp are rounded in double 2 C times, with partial sums
// of at most |U w| r |x|.
#pragma once

#include <vector>

#include "thimble/engine/model.h"
#include "thimble/inspect/spectral.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

class AttributionRounding {
 public:
  // directions (V, C)
  AttributionRounding(const Model& model, const DoubleMatrix& directions);

  // Returns |x| of a vector of the residual stream.
  static double size(const Real* x, std::int64_t n);
  // Returns sqrt(2 K) (|W| |z| + |b'|) for the outputs z (K) of a layer's heads.
  double size(std::size_t layer, const Real* z) const;

  // Returns the largest error of a token's logit that rounding explains. residual: r times the root sum of
  // squares of all sizes; last: r |x| of the input of the final norm, mean over the positions read; length T.
  double bound(std::size_t token, double residual, double last, std::int64_t length) const;

 private:
  struct Token {
    double residual;           // factor of an error in the residual stream
    double direction, offset;  // |U w|, |U| |b| + |o|
  };
  struct Projection {
    std::int64_t inputs;  // K
    double weight, bias;
  };
  std::int64_t channels_;
  std::vector<Token> tokens_;
  std::vector<Projection> projections_;  // by layer
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
