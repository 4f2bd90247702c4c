// Layer normalisation, row by row, C columns.
//   forward    n = (x - mean x) rstd,  rstd = 1 / sqrt(mean (x - mean x)^2 + epsilon),  y = n w + b
//   backward   db += dy,  dw += dy n,  g = dy w,  dx += rstd (g - mean g - n mean (g n))
//   saved: mean and rstd of each row; n is recomputed
#include "thimble/kernels/layer_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layer_norm.cpp"
#include <hwy/foreach_target.h>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble::inline THIMBLE_PRECISION::kernels::HWY_NAMESPACE {

void layer_norm_forward(MatrixView y, MatrixView statistics, ConstMatrixView x, ConstMatrixView weight,
                        ConstMatrixView bias, Real epsilon) {
  const std::int64_t n = x.cols;
  const Real inverse_n = Real{1} / static_cast<Real>(n);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const Real* from = x.row(r);
    const Real mean =
        inverse_n * sum_lanes(n, [from](auto d, std::int64_t i) HWY_ATTR { return hn::LoadU(d, from + i); });
    const Real variance = inverse_n * sum_lanes(n, [from, mean](auto d, std::int64_t i) HWY_ATTR {
                            const auto centred = hn::Sub(hn::LoadU(d, from + i), hn::Set(d, mean));
                            return hn::Mul(centred, centred);
                          });
    const Real rstd = 1 / std::sqrt(variance + epsilon);
    lanes(n, [=, to = y.row(r), w = weight.data, b = bias.data](auto d, std::int64_t i) HWY_ATTR {
      const auto normal = hn::Mul(hn::Sub(hn::LoadU(d, from + i), hn::Set(d, mean)), hn::Set(d, rstd));
      hn::StoreU(hn::MulAdd(normal, hn::LoadU(d, w + i), hn::LoadU(d, b + i)), d, to + i);
    });
    statistics.row(r)[0] = mean;
    statistics.row(r)[1] = rstd;
  }
}

void layer_norm_backward(GradientView dx, MatrixView dweight, MatrixView dbias, ConstMatrixView dy,
                         ConstMatrixView x, ConstMatrixView weight, ConstMatrixView statistics) {
  const std::int64_t n = x.cols;
  const Real inverse_n = Real{1} / static_cast<Real>(n);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const Real *from = x.row(r), *g = dy.row(r), *w = weight.data;
    const Real mean = statistics.row(r)[0], rstd = statistics.row(r)[1];
    const auto normal = [=](auto d, std::int64_t i) HWY_ATTR {
      return hn::Mul(hn::Sub(hn::LoadU(d, from + i), hn::Set(d, mean)), hn::Set(d, rstd));
    };
    if (dweight.data != nullptr) {
      lanes(n, [&, to = dweight.data](auto d, std::int64_t i) HWY_ATTR {
        hn::StoreU(hn::MulAdd(hn::LoadU(d, g + i), normal(d, i), hn::LoadU(d, to + i)), d, to + i);
      });
    }
    if (dbias.data != nullptr) {
      lanes(n, [g, to = dbias.data](auto d, std::int64_t i)
                   HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, g + i), hn::LoadU(d, to + i)), d, to + i); });
    }
    if (dx.data == nullptr) continue;
    const Real mean_g = inverse_n * dot(g, w, n);
    const Real mean_gn = inverse_n * sum_lanes(n, [&](auto d, std::int64_t i) HWY_ATTR {
                           return hn::Mul(hn::Mul(hn::LoadU(d, g + i), hn::LoadU(d, w + i)), normal(d, i));
                         });
    lanes(n, [&, to = dx.row(r)](auto d, std::int64_t i) HWY_ATTR {
      const auto gradient = hn::Mul(hn::LoadU(d, g + i), hn::LoadU(d, w + i));
      const auto rest =
          hn::NegMulAdd(normal(d, i), hn::Set(d, mean_gn), hn::Sub(gradient, hn::Set(d, mean_g)));
      add_to(d, to + i, hn::Mul(hn::Set(d, rstd), rest), dx.uninitialized);
    });
  }
}

}  // namespace thimble::inline THIMBLE_PRECISION::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble::inline THIMBLE_PRECISION::kernels {

HWY_EXPORT(layer_norm_forward);
HWY_EXPORT(layer_norm_backward);

void layer_norm_forward(MatrixView y, MatrixView statistics, ConstMatrixView x, ConstMatrixView weight,
                        ConstMatrixView bias, Real epsilon) {
  HWY_DYNAMIC_DISPATCH(layer_norm_forward)(y, statistics, x, weight, bias, epsilon);
}
void layer_norm_backward(GradientView dx, MatrixView dweight, MatrixView dbias, ConstMatrixView dy,
                         ConstMatrixView x, ConstMatrixView weight, ConstMatrixView statistics) {
  HWY_DYNAMIC_DISPATCH(layer_norm_backward)(dx, dweight, dbias, dy, x, weight, statistics);
}

}  // namespace thimble::inline THIMBLE_PRECISION::kernels
#endif  // HWY_ONCE
