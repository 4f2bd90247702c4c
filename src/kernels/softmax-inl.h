// Softmax of one row. Toggled guard: see simd-inl.h.
#if defined(THIMBLE_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_KERNELS_SOFTMAX_INL_H_
#undef THIMBLE_KERNELS_SOFTMAX_INL_H_
#else
#define THIMBLE_KERNELS_SOFTMAX_INL_H_
#endif

#include "kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

// Computes y = exp(x - max) for n >= 1 values up to max, and returns the sum of y. y may be x.
HWY_INLINE Real exp_shifted(Real* y, const Real* x, Real max, std::int64_t n) {
  return sum_lanes(n, [=](auto d, std::int64_t i, auto sum) HWY_ATTR {
    const auto e = exp_up_to_88(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, max)));
    hn::StoreU(e, d, y + i);
    return hn::Add(sum, e);
  });
}

// Computes y = softmax(x) of n >= 1 values. y may be x.
HWY_INLINE void softmax_row(Real* y, const Real* x, std::int64_t n) {
  const Real inverse = 1 / exp_shifted(y, x, max_of(x, n), n);
  lanes(n, [=](auto d, std::int64_t i)
               HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, y + i), hn::Set(d, inverse)), d, y + i); });
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // THIMBLE_KERNELS_SOFTMAX_INL_H_
