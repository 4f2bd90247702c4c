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

#include <algorithm>
#include <cstdint>

#include "thimble/engine/matrix_view.h"
#include "thimble/engine/real.h"

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

constexpr bool kNeon = HWY_ARCH_ARM && HWY_TARGET < HWY_EMU128;  // of several sorts from Highway 1.1 on
// Whether MulAdd rounds once, as one instruction; elsewhere it multiplies, then adds.
constexpr bool kFused = HWY_TARGET <= HWY_AVX2 || kNeon;

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

constexpr std::int64_t kFewRows = 16;

// Calls f(first, count) for a few rows at a time. A kernel that sums a row before it continues takes each of its steps
// for all of these rows, so that no row waits for the sum of another one.
template <class F>
HWY_INLINE void few_rows(std::int64_t rows, const F& f) {
  for (std::int64_t first = 0; first < rows; first += kFewRows) f(first, std::min(kFewRows, rows - first));
}

// Stores to = v where the gradient is empty, else to += v. Every backward kernel stores through it.
template <class D, class V>
HWY_INLINE void add_to(D d, Real* to, V v, bool empty) {
  hn::StoreU(empty ? v : hn::Add(hn::LoadU(d, to), v), d, to);
}

// Returns the sum of the lanes of v: half of them plus the other half, and so on.
template <class D, class V>
HWY_INLINE Real sum_of_halves(D, V v) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return sum_of_halves(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
#endif
  return hn::GetLane(v);
}

// Returns a vector whose lanes add up to the sum over 0 .. n-1; f(d, i, sum) returns sum plus the terms from i on. The
// bits of the sum of its halves do not depend on the width of a vector: term i goes to lane i mod 16 of 16, and then
// lane l is added to lane l + 8, those to l + 4, + 2 and + 1.
template <class F>
HWY_INLINE auto partial_sums(std::int64_t n, const F& f) {
  const Wide d;
  constexpr std::int64_t kLanes = 16, kWidth = hn::MaxLanes(Wide()), kVectors = kLanes / kWidth;
  decltype(hn::Zero(d)) sum[kVectors];
  for (auto& s : sum) s = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t v = 0; v < kVectors; ++v) sum[v] = f(d, i + v * kWidth, sum[v]);
  }
  if (i < n) {
    alignas(64) Real lane[kLanes];
    for (std::int64_t v = 0; v < kVectors; ++v) hn::Store(sum[v], d, lane + v * kWidth);
    lanes(n - i, [&](auto part, std::int64_t l)
                     HWY_ATTR { hn::StoreU(f(part, i + l, hn::LoadU(part, lane + l)), part, lane + l); });
    for (std::int64_t v = 0; v < kVectors; ++v) sum[v] = hn::Load(d, lane + v * kWidth);
  }
  for (std::int64_t gap = kVectors / 2; gap > 0; gap /= 2) {
    for (std::int64_t v = 0; v < gap; ++v) sum[v] = hn::Add(sum[v], sum[v + gap]);
  }
  return sum[0];
}

// Returns the sum over 0 .. n-1 of the terms of partial_sums().
template <class F>
HWY_INLINE Real sum_lanes(std::int64_t n, const F& f) {
  return sum_of_halves(Wide(), partial_sums(n, f));
}

// Returns the dot product of n elements.
HWY_INLINE Real dot(const Real* a, const Real* b, std::int64_t n) {
  return sum_lanes(n, [=](auto d, std::int64_t i, auto sum)
                          HWY_ATTR { return hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum); });
}

// Returns the largest of n >= 1 values.
HWY_INLINE Real max_of(const Real* x, std::int64_t n) {
  const Wide wide;
  const std::int64_t w = width(wide);
  Real best = x[0];
  if (n >= w) {
    auto most = hn::LoadU(wide, x + n - w);
    for (std::int64_t i = 0; i + w <= n; i += w) most = hn::Max(most, hn::LoadU(wide, x + i));
    return hn::GetLane(hn::MaxOfLanes(wide, most));
  }
  for (std::int64_t i = 1; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // THIMBLE_KERNELS_SIMD_INL_H_
