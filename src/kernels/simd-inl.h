// Functions that vector kernels share. Highway's foreach_target.h includes this once per target, hence the
// toggled guard.
//
// A kernel is written for a vector tag `d`; lanes() calls it on whole vectors and then on narrower ones for
// the rest of a row, so that no kernel reads or writes past the end and none has a scalar copy.
#if defined(THIMBLE_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_KERNELS_SIMD_INL_H_
#undef THIMBLE_KERNELS_SIMD_INL_H_
#else
#define THIMBLE_KERNELS_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "thimble/core/real.h"
#include "thimble/tensor/matrix_view.h"

// Defines kernels::name, which calls HWY_NAMESPACE::name as compiled for the CPU at hand.
#undef THIMBLE_DISPATCH
#if HWY_ONCE
#define THIMBLE_DISPATCH(result, name, parameters, ...)                      \
  namespace thimble {                                                        \
  inline namespace THIMBLE_PRECISION {                                       \
  namespace kernels {                                                        \
  HWY_EXPORT(name);                                                          \
  result name parameters { return HWY_DYNAMIC_DISPATCH(name)(__VA_ARGS__); } \
  }                                                                          \
  }                                                                          \
  }
#else
#define THIMBLE_DISPATCH(...)
#endif

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::ScalableTag<Real>;
using Narrow = hn::CappedTag<Real, 4>;
using Single = hn::CappedTag<Real, 1>;

inline std::int64_t width(auto d) { return static_cast<std::int64_t>(hn::Lanes(d)); }

// Calls f(d, i) for vectors of consecutive elements from i on that cover 0 .. n-1.
template <class F>
HWY_INLINE void lanes(std::int64_t n, const F& f) {
  const Wide wide;
  const Narrow narrow;
  std::int64_t i = 0;
  for (; i + width(wide) <= n; i += width(wide)) f(wide, i);
  for (; i + width(narrow) <= n; i += width(narrow)) f(narrow, i);
  for (; i < n; ++i) f(Single(), i);
}

// Stores to = v where the gradient is empty, else to += v. Every backward kernel stores through it.
template <class D, class V>
HWY_INLINE void add_to(D d, Real* to, V v, bool empty) {
  hn::StoreU(empty ? v : hn::Add(hn::LoadU(d, to), v), d, to);
}

// Returns the sum of f(d, i) over 0 .. n-1.
template <class F>
HWY_INLINE Real sum_lanes(std::int64_t n, const F& f) {
  const Wide wide;
  const std::int64_t step = width(wide);
  auto even = hn::Zero(wide), odd = hn::Zero(wide);  // two chains hide the latency of the addition
  std::int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    even = hn::Add(even, f(wide, i));
    odd = hn::Add(odd, f(wide, i + step));
  }
  if (i + step <= n) {
    even = hn::Add(even, f(wide, i));
    i += step;
  }
  Real sum = hn::GetLane(hn::SumOfLanes(wide, hn::Add(even, odd)));
  for (; i < n; ++i) sum += hn::GetLane(f(Single(), i));
  return sum;
}

// Returns the dot product of n elements.
HWY_INLINE Real dot(const Real* a, const Real* b, std::int64_t n) {
  return sum_lanes(
      n, [=](auto d, std::int64_t i) HWY_ATTR { return hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i)); });
}

// Returns the largest of n >= 1 values.
HWY_INLINE Real max_of(const Real* x, std::int64_t n) {
  const Wide wide;
  std::int64_t i = 0;
  Real best = x[0];
  if (n >= width(wide)) {
    auto most = hn::LoadU(wide, x);
    for (i = width(wide); i + width(wide) <= n; i += width(wide))
      most = hn::Max(most, hn::LoadU(wide, x + i));
    best = hn::GetLane(hn::MaxOfLanes(wide, most));
  }
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // THIMBLE_KERNELS_SIMD_INL_H_
