#include "engine/kernels/products/peak.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/products/peak.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

double multiply_adds(std::int64_t repetitions, Real& result) {
  const Wide d;
  constexpr int kChains = 12;  // two units of a latency of 4 to 6
  const auto a = hn::Set(d, Real(0.5)), b = hn::Set(d, result);
  decltype(hn::Zero(d)) x[kChains];
  for (int i = 0; i < kChains; ++i) x[i] = hn::Set(d, static_cast<Real>(i));
  for (std::int64_t r = 0; r < repetitions; ++r) {
    for (int i = 0; i < kChains; ++i) x[i] = hn::MulAdd(a, x[i], b);
  }
  for (int i = 1; i < kChains; ++i) x[0] = hn::Add(x[0], x[i]);
  result = hn::GetLane(x[0]);
  return 2.0 * kChains * static_cast<double>(width(d)) * static_cast<double>(repetitions);
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(double, multiply_adds, (std::int64_t repetitions, Real& result), repetitions, result)
