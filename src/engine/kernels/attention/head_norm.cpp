// RMS normalization of the D columns of every head.
//   forward    y = x r,  r = 1 / sqrt(mean x^2 + epsilon)
//   backward   dx += r (dy - y mean (dy y))
//   saved: r of each row and head, and y
#include "engine/kernels/attention/head_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/attention/head_norm.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels/attention/blocks.h"
#include "engine/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

void head_norm_forward(MatrixView y, MatrixView rrms, ConstMatrixView x, std::int64_t heads, Real epsilon) {
  for (std::int64_t i = 0; i < x.rows * heads; ++i) {
    const std::int64_t r = i / heads, h = i % heads, n = x.cols / heads;
    const Real* from = columns_of(x, h, heads).row(r);
    const Real factor = 1 / std::sqrt(dot(from, from, n) / static_cast<Real>(n) + epsilon);
    lanes(n, [=, to = columns_of(y, h, heads).row(r)](auto d, std::int64_t c)
                 HWY_ATTR { store(hn::Mul(load(d, from + c), hn::Set(d, factor)), d, to + c); });
    rrms.row(r)[h] = factor;
  }
}

void head_norm_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y, ConstMatrixView rrms,
                        std::int64_t heads) {
  for (std::int64_t i = 0; i < dx.rows * heads; ++i) {
    const std::int64_t r = i / heads, h = i % heads, n = y.cols / heads;
    const Real *g = columns_of(dy, h, heads).row(r), *out = columns_of(y, h, heads).row(r);
    // y = x r,  r = 1 / sqrt(mean x^2 + epsilon)
    const Real factor = rrms.row(r)[h], mean = dot(g, out, n) / static_cast<Real>(n);
    lanes(n, [=, to = columns_of(dx, h, heads)](auto d, std::int64_t c) HWY_ATTR {
      const auto rest = hn::NegMulAdd(load(d, out + c), hn::Set(d, mean), load(d, g + c));
      add_to(d, to.row(r) + c, hn::Mul(hn::Set(d, factor), rest), to.uninitialized);
    });
  }
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, head_norm_forward,
                 (MatrixView y, MatrixView rrms, ConstMatrixView x, std::int64_t heads, Real epsilon), y,
                 rrms, x, heads, epsilon)
THIMBLE_DISPATCH(void, head_norm_backward,
                 (GradientView dx, ConstMatrixView dy, ConstMatrixView y, ConstMatrixView rrms,
                  std::int64_t heads),
                 dx, dy, y, rrms, heads)
