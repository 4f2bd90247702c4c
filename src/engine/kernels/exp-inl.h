// The exponential function of numbers up to 88, and the logistic function. Toggled guard: see simd-inl.h.
#if defined(THIMBLE_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_KERNELS_EXP_INL_H_
#undef THIMBLE_KERNELS_EXP_INL_H_
#else
#define THIMBLE_KERNELS_EXP_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>

#include "engine/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

// Returns exp(x) for x <= 88, just below where float overflows; NaN for NaN, and 0 where the result would not
// be a normal number. In float it takes half the operations of Highway's, which accepts all numbers: x = n ln
// 2 + r, exp(x) = 2^n exp(r), with exp(r) = 1 + r + r^2 p(r) for |r| <= ln(2) / 2, p fitted at Chebyshev
// nodes. Relative error 1e-8 before rounding.
template <class D, class V>
HWY_INLINE V exp_up_to_88(D d, V x) {
#ifdef THIMBLE_DOUBLE
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
#else
  constexpr float kLog2E = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kSmallest = -87.3365447f;  // ln 2^-126
  const auto set = [d](float value) HWY_ATTR { return hn::Set(d, value); };
  // n, rounded by a number whose last bit is worth 1, and in whose bits n then is.
  constexpr float kOnes = 1.5f * (1 << 23);
  const auto shifted = hn::Add(hn::Mul(x, set(kLog2E)), set(kOnes)), n = hn::Sub(shifted, set(kOnes));
  const auto r = hn::NegMulAdd(n, set(kLn2Low), hn::NegMulAdd(n, set(kLn2High), x));
  auto p = hn::MulAdd(set(1.39336884e-3f), r, set(8.36320547e-3f));
  p = hn::MulAdd(p, r, set(4.16664646e-2f));
  p = hn::MulAdd(p, r, set(1.66665768e-1f));
  p = hn::MulAdd(p, r, set(5.00000001e-1f));
  const auto exp_r = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), set(1));
  const hn::RebindToUnsigned<D> integers;
  const auto exponent = hn::Add(hn::BitCast(integers, shifted), hn::Set(integers, 127));
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
  return hn::IfThenZeroElse(hn::Lt(x, set(kSmallest)), hn::Mul(exp_r, power));
#endif
}

// Returns s = 1 / (1 + exp(-x)) and sets `complement` to 1 - s = 1 / (1 + exp(x)), without cancellation.
template <class D, class V>
HWY_INLINE V sigmoid(D d, V x, V& complement) {
  const auto one = hn::Set(d, Real{1});
  const auto e = exp_up_to_88(d, hn::Neg(hn::Abs(x)));
  const auto large = hn::Div(one, hn::Add(one, e)), small = hn::Mul(e, large);
  const auto negative = hn::Lt(x, hn::Zero(d));
  complement = hn::IfThenElse(negative, large, small);
  return hn::IfThenElse(negative, small, large);
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // THIMBLE_KERNELS_EXP_INL_H_
