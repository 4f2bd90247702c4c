// Softmax and cross entropy in one.
//   forward    loss = weight sum_n (ln sum_j exp z_nj - sum_j q_nj z_nj),  q = (1 - s) onehot(label) + s / V
//   backward   dz_nj += dloss weight (p_nj - q_nj),  p = softmax z
//   saved: dlogits = weight (p - q), so that backward is scale_backward
#include "engine/kernels/cross_entropy.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/cross_entropy.cpp"
#include <hwy/foreach_target.h>

#include "engine/core/portable_math.h"

#include "engine/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

double cross_entropy_forward(MatrixView dlogits, ConstMatrixView logits, std::span<const std::int32_t> labels,
                             Real smoothing, Real weight) {
  const std::int64_t n = logits.cols;
  const Real even = smoothing / static_cast<Real>(n);
  constexpr int kFactors = 16;  // (2^31)^16 is within the range of double
  double loss = 0, product = 1;
  int factors = 0;
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    const Real* z = logits.row(r);
    Real* to = dlogits.row(r);
    const std::int32_t label = labels[static_cast<std::size_t>(r)];
    if (label < 0) {
      std::fill_n(to, n, Real{0});
      continue;
    }
    const Real max = max_of(z, n);
    const Real sum = sum_of_halves(Wide(), exp_shifted(to, z, max, n));
    lanes(n, [=, scale = weight / sum, shift = -weight * even](auto d, std::int64_t i) HWY_ATTR {
      store(hn::MulAdd(load(d, to + i), hn::Set(d, scale), hn::Set(d, shift)), d, to + i);
    });
    to[label] -= weight * (1 - smoothing);
    // sum_j q_j (max - z_j): without the cancellation of max + ln sum - sum_j q_j z_j for large logits.
    Real expected = (1 - smoothing) * (max - z[label]);
    if (smoothing > 0) {
      expected += even * sum_lanes(n, [=](auto d, std::int64_t i, auto all) HWY_ATTR {
                    return hn::Add(all, hn::Sub(hn::Set(d, max), load(d, z + i)));
                  });
    }
    // One logarithm for the product of a few sums, each 1 to V.
    product *= static_cast<double>(sum);
    if (++factors == kFactors) {
      loss += static_cast<double>(weight) * portable::log(product);
      product = 1;
      factors = 0;
    }
    loss += static_cast<double>(weight) * static_cast<double>(expected);
  }
  return loss + static_cast<double>(weight) * portable::log(product);
}

std::int64_t count_correct(ConstMatrixView logits, std::span<const std::int32_t> labels) {
  std::int64_t correct = 0;
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    const std::int32_t label = labels[static_cast<std::size_t>(r)];
    if (label < 0) continue;
    const Real* z = logits.row(r);
    correct += z[label] == max_of(z, logits.cols) && std::find(z, z + label, z[label]) == z + label;
  }
  return correct;
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(double, cross_entropy_forward,
                 (MatrixView dlogits, ConstMatrixView logits, std::span<const std::int32_t> labels,
                  Real smoothing, Real weight),
                 dlogits, logits, labels, smoothing, weight)
THIMBLE_DISPATCH(std::int64_t, count_correct, (ConstMatrixView logits, std::span<const std::int32_t> labels),
                 logits, labels)
