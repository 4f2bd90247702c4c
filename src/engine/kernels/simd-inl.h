// Functions that vector kernels share. Highway's foreach_target.h includes this once per target, hence the
// toggled guard.
//
// A kernel is written for a vector tag `d`; lanes() calls it on whole vectors and then, for the rest of a row, on the
// first lanes of one. It reads with load() and writes with store(), so that it never touches memory past the end and
// needs no scalar copy, and a row shorter than a vector takes one.
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

constexpr bool kNeon = HWY_ARCH_ARM && HWY_TARGET < HWY_EMU128;  // of several sorts from Highway 1.1 on
// Whether MulAdd rounds once, as one instruction; elsewhere it multiplies, then adds.
constexpr bool kFused = HWY_TARGET <= HWY_AVX2 || kNeon;

inline std::int64_t width(auto d) { return static_cast<std::int64_t>(hn::Lanes(d)); }

// A tag of vectors of D whose first `count` >= 1 lanes are in memory.
template <class D>
struct First : D {
  std::int64_t count;
};

// Returns the first lanes of a vector, and 0 for the others.
template <class D>
HWY_INLINE hn::Vec<D> load([[maybe_unused]] First<D> first, const Real* from) {
  const D d;
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(first.count)), d, from);
#elif HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    const std::int64_t w = width(half), above = first.count - w;
    if (above < 0) return hn::ZeroExtendVector(d, load(First<hn::Half<D>>{{}, first.count}, from));
    if (above == 0) return hn::ZeroExtendVector(d, hn::LoadU(half, from));
    if (above < w)
      return hn::Combine(d, load(First<hn::Half<D>>{{}, above}, from + w), hn::LoadU(half, from));
  }
#endif
  return hn::LoadU(d, from);
}

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const Real* from) {
  return hn::LoadU(d, from);
}

// Stores the first lanes of a vector, in pieces: some CPUs, such as Zen 4, take long for a store with a mask.
template <class D>
HWY_INLINE void store(hn::Vec<D> v, [[maybe_unused]] First<D> first, Real* to) {
  const D d;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    const std::int64_t w = width(half), above = first.count - w;
    if (above < 0) return store(hn::LowerHalf(half, v), First<hn::Half<D>>{{}, first.count}, to);
    if (above < w) {
      hn::StoreU(hn::LowerHalf(half, v), half, to);
      if (above > 0) store(hn::UpperHalf(half, v), First<hn::Half<D>>{{}, above}, to + w);
      return;
    }
  }
#endif
  hn::StoreU(v, d, to);
}

template <class D>
HWY_INLINE void store(hn::Vec<D> v, D d, Real* to) {
  hn::StoreU(v, d, to);
}

// Calls f(d, i) for vectors of consecutive elements from i on that cover 0 .. n-1.
template <class F>
HWY_INLINE void lanes(std::int64_t n, const F& f) {
  const Wide d;
  std::int64_t i = 0;
  for (; i + width(d) <= n; i += width(d)) f(d, i);
  if (i < n) f(First<Wide>{{}, n - i}, i);
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
  store(empty ? v : hn::Add(load(d, to), v), d, to);
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
  for (std::int64_t v = 0; i < n; ++v, i += kWidth) {
    const First<Wide> part{{}, std::min(kWidth, n - i)};
    sum[v] = hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(part.count)), f(part, i, sum[v]), sum[v]);
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
                          HWY_ATTR { return hn::MulAdd(load(d, a + i), load(d, b + i), sum); });
}

// Returns the largest of n >= 1 values.
HWY_INLINE Real max_of(const Real* x, std::int64_t n) {
  const Wide wide;
  const std::int64_t w = width(wide);
  Real best = x[0];
  if (n < w) {
    const auto known = hn::FirstN(wide, static_cast<std::size_t>(n));
    const auto some = hn::IfThenElse(known, load(First<Wide>{{}, n}, x), hn::Set(wide, best));
    return hn::GetLane(hn::MaxOfLanes(wide, some));
  }
  auto most = hn::LoadU(wide, x + n - w);
  for (std::int64_t i = 0; i + w <= n; i += w) most = hn::Max(most, hn::LoadU(wide, x + i));
  return hn::GetLane(hn::MaxOfLanes(wide, most));
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // THIMBLE_KERNELS_SIMD_INL_H_
