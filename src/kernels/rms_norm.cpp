// RMS normalisation, row by row, C columns.
//   forward    n = x rrms,  rrms = 1 / sqrt(mean x^2 + epsilon),  y = n w
//   backward   dw += dy n,  g = dy w,  dx += rrms (g - n mean (g n))
//   saved: rrms of each row; n is recomputed
#include "thimble/kernels/rms_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rms_norm.cpp"
#include <hwy/foreach_target.h>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble::inline THIMBLE_PRECISION::kernels::HWY_NAMESPACE {

void rms_norm_forward(MatrixView y, MatrixView rrms, ConstMatrixView x, ConstMatrixView weight,
                      Real epsilon) {
  const std::int64_t n = x.cols;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const Real* from = x.row(r);
    const Real factor = 1 / std::sqrt(dot(from, from, n) / static_cast<Real>(n) + epsilon);
    lanes(n, [=, to = y.row(r), w = weight.data](auto d, std::int64_t i) HWY_ATTR {
      const auto normal = hn::Mul(hn::LoadU(d, from + i), hn::Set(d, factor));
      hn::StoreU(hn::Mul(normal, hn::LoadU(d, w + i)), d, to + i);
    });
    rrms.row(r)[0] = factor;
  }
}

void rms_norm_backward(GradientView dx, MatrixView dweight, ConstMatrixView dy, ConstMatrixView x,
                       ConstMatrixView weight, ConstMatrixView rrms) {
  const std::int64_t n = x.cols;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const Real *from = x.row(r), *g = dy.row(r), *w = weight.data;
    const Real factor = rrms.row(r)[0];
    const auto normal = [=](auto d, std::int64_t i)
                            HWY_ATTR { return hn::Mul(hn::LoadU(d, from + i), hn::Set(d, factor)); };
    if (dweight.data != nullptr) {
      lanes(n, [&, to = dweight.data](auto d, std::int64_t i) HWY_ATTR {
        hn::StoreU(hn::MulAdd(hn::LoadU(d, g + i), normal(d, i), hn::LoadU(d, to + i)), d, to + i);
      });
    }
    if (dx.data == nullptr) continue;
    const Real sum_gn = sum_lanes(n, [&](auto d, std::int64_t i) HWY_ATTR {
      return hn::Mul(hn::Mul(hn::LoadU(d, g + i), hn::LoadU(d, w + i)), normal(d, i));
    });
    const Real mean_gn = sum_gn / static_cast<Real>(n);
    lanes(n, [&, to = dx.row(r)](auto d, std::int64_t i) HWY_ATTR {
      const auto gradient = hn::Mul(hn::LoadU(d, g + i), hn::LoadU(d, w + i));
      const auto rest = hn::NegMulAdd(normal(d, i), hn::Set(d, mean_gn), gradient);
      add_to(d, to + i, hn::Mul(hn::Set(d, factor), rest), dx.uninitialized);
    });
  }
}

}  // namespace thimble::inline THIMBLE_PRECISION::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble::inline THIMBLE_PRECISION::kernels {

HWY_EXPORT(rms_norm_forward);
HWY_EXPORT(rms_norm_backward);

void rms_norm_forward(MatrixView y, MatrixView rrms, ConstMatrixView x, ConstMatrixView weight,
                      Real epsilon) {
  HWY_DYNAMIC_DISPATCH(rms_norm_forward)(y, rrms, x, weight, epsilon);
}
void rms_norm_backward(GradientView dx, MatrixView dweight, ConstMatrixView dy, ConstMatrixView x,
                       ConstMatrixView weight, ConstMatrixView rrms) {
  HWY_DYNAMIC_DISPATCH(rms_norm_backward)(dx, dweight, dy, x, weight, rrms);
}

}  // namespace thimble::inline THIMBLE_PRECISION::kernels
#endif  // HWY_ONCE
