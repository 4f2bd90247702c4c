// How far the parts of a logit may be from it by rounding alone.
//
// A rounding changes a number s by at most u |s|, u the unit round-off. Partial sums of a product a b are at
// most |a| |b|, so n roundings leave it wrong by about sqrt(n) u |a| |b|: they are taken as independent, as
// in Higham and Mary (2019), "A new approach to probabilistic rounding error analysis".
//
// d: the directions of attribution.cpp; U: the rows of the output net; w, b: the final norm's; r: its scale.
//
// In the residual stream every vector x is rounded once, and the output projection W z + b' of heads 2 K
// times an element. Errors of norm e there change the logit by about r e max_c |d_c|. The final norm, the
// pooling and the output net round some 8 C + 2 T times, sums that are at most |U w| r |x| + |U| |b| + |o|.
// The sums of attribution.cpp are rounded too, in double: 2 C times, and at most |U w| r times the same
// norms.
#pragma once

#include <vector>

#include "thimble/kernels/spectral.h"
#include "thimble/model/model.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

class AttributionRounding {
 public:
  // directions (V, C)
  AttributionRounding(const Model& model, const DoubleMatrix& directions);

  // Of a vector of the residual stream: |x|.
  static double size(const Real* x, std::int64_t n);
  // Of what a layer's heads add to it: sqrt(2 K) (|W| |z| + |b'|), z (K) what the heads give.
  double size(std::size_t layer, const Real* z) const;

  // The largest error of a token's logit that rounding explains. residual: r times all sizes above, as a
  // norm; last: r |x| of what goes into the final norm, mean over the positions read; length T.
  double bound(std::size_t token, double residual, double last, std::int64_t length) const;

 private:
  struct Token {
    double residual;           // what an error in the residual stream is multiplied by
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
