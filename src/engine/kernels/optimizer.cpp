#include "engine/kernels/optimizer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/optimizer.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

void adam_step(std::span<Real> p, std::span<Real> m, std::span<Real> v, std::span<const Real> gradient,
               const AdamFactors& f) {
  lanes(static_cast<std::int64_t>(p.size()), [=, pp = p.data(), pm = m.data(), pv = v.data(),
                                              pg = gradient.data()](auto d, std::int64_t i) HWY_ATTR {
    const auto set = [d](Real x) HWY_ATTR { return hn::Set(d, x); };
    const auto old = load(d, pp + i);
    const auto g = hn::MulAdd(set(f.l2), old, hn::Mul(set(f.gradient_scale), load(d, pg + i)));
    const auto first = hn::MulAdd(set(f.beta1), load(d, pm + i), hn::Mul(set(1 - f.beta1), g));
    const auto second = hn::MulAdd(set(f.beta2), load(d, pv + i), hn::Mul(set(1 - f.beta2), hn::Mul(g, g)));
    const auto size = hn::MulAdd(hn::Sqrt(second), set(f.root_correction), set(f.epsilon));
    store(first, d, pm + i);
    store(second, d, pv + i);
    store(hn::MulSub(set(f.shrink), old, hn::Div(hn::Mul(set(f.lr), first), size)), d, pp + i);
  });
}

void sgd_step(std::span<Real> p, std::span<Real> v, std::span<const Real> gradient, const SgdFactors& f) {
  lanes(static_cast<std::int64_t>(p.size()), [=, pp = p.data(), pv = v.data(), pg = gradient.data()](
                                                 auto d, std::int64_t i) HWY_ATTR {
    const auto old = load(d, pp + i);
    const auto g = hn::MulAdd(hn::Set(d, f.l2), old, hn::Mul(hn::Set(d, f.gradient_scale), load(d, pg + i)));
    const auto velocity = hn::MulAdd(hn::Set(d, f.momentum), load(d, pv + i), g);
    store(velocity, d, pv + i);
    store(hn::NegMulAdd(hn::Set(d, f.lr), velocity, old), d, pp + i);
  });
}

double sum_of_squares(std::span<const Real> x) {
  constexpr std::size_t kBlock = 1024;
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); i += kBlock) {
    const auto part = x.subspan(i, std::min(kBlock, x.size() - i));
    sum += static_cast<double>(dot(part.data(), part.data(), static_cast<std::int64_t>(part.size())));
  }
  return sum;
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, adam_step,
                 (std::span<Real> p, std::span<Real> m, std::span<Real> v, std::span<const Real> gradient,
                  const AdamFactors& f),
                 p, m, v, gradient, f)
THIMBLE_DISPATCH(void, sgd_step,
                 (std::span<Real> p, std::span<Real> v, std::span<const Real> gradient, const SgdFactors& f),
                 p, v, gradient, f)
THIMBLE_DISPATCH(double, sum_of_squares, (std::span<const Real> x), x)
