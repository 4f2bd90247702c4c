// Layer normalization and RMS normalization, row by row, C columns.
//   forward    n = (x - mean x) rstd,  rstd = 1 / sqrt(mean (x - mean x)^2 + epsilon),  y = n w + b
//   backward   db += dy,  dw += dy n,  g = dy w,  dx += rstd (g - mean g - n mean (g n))
//   RMS        0 in place of mean x, mean g and b; rrms in place of rstd
//   saved: mean and rstd, or rrms, of each row; n is recomputed
#include "engine/kernels/norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/norm.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

enum class Norm { layer, rms };

// The normalized elements n of a row.
template <Norm kNorm>
struct NormalizedRow {
  const Real* x;
  Real mean, factor;

  template <class D>
  HWY_INLINE auto operator()(D d, std::int64_t i) const {
    const auto v = hn::LoadU(d, x + i);
    if constexpr (kNorm == Norm::rms) return hn::Mul(v, hn::Set(d, factor));
    return hn::Mul(hn::Sub(v, hn::Set(d, mean)), hn::Set(d, factor));
  }
};

// Adds the gradients of row r. mean(sum) returns the mean over the columns.
template <Norm kNorm, class Mean>
HWY_INLINE void norm_row_backward(GradientView dx, MatrixView dweight, ConstMatrixView dy,
                                  ConstMatrixView weight, std::int64_t r, const NormalizedRow<kNorm>& normal,
                                  const Mean& mean) {
  // y = n w + b,  n = (x - mean x) rstd
  const std::int64_t n = dy.cols;
  const Real *g = dy.row(r), *w = weight.data;
  if (dweight.data != nullptr) {
    lanes(n, [&, to = dweight.data](auto d, std::int64_t i) HWY_ATTR {
      hn::StoreU(hn::MulAdd(hn::LoadU(d, g + i), normal(d, i), hn::LoadU(d, to + i)), d, to + i);
    });
  }
  if (dx.data == nullptr) return;
  const Real mean_g = kNorm == Norm::layer ? mean(dot(g, w, n)) : 0;
  const Real mean_gn = mean(sum_lanes(n, [&](auto d, std::int64_t i, auto sum) HWY_ATTR {
    return hn::MulAdd(hn::Mul(hn::LoadU(d, g + i), hn::LoadU(d, w + i)), normal(d, i), sum);
  }));
  lanes(n, [&, to = dx.row(r)](auto d, std::int64_t i) HWY_ATTR {
    auto gradient = hn::Mul(hn::LoadU(d, g + i), hn::LoadU(d, w + i));
    if constexpr (kNorm == Norm::layer) gradient = hn::Sub(gradient, hn::Set(d, mean_g));
    const auto rest = hn::NegMulAdd(normal(d, i), hn::Set(d, mean_gn), gradient);
    add_to(d, to + i, hn::Mul(hn::Set(d, normal.factor), rest), dx.uninitialized);
  });
}

void layer_norm_forward(MatrixView y, MatrixView mean_rstd, ConstMatrixView x, ConstMatrixView weight,
                        ConstMatrixView bias, Real epsilon) {
  const std::int64_t n = x.cols;
  const Real inverse_n = Real{1} / static_cast<Real>(n);
  few_rows(x.rows, [&](std::int64_t first, std::int64_t count) HWY_ATTR {
    for (std::int64_t r = first; r < first + count; ++r) {
      mean_rstd.row(r)[0] =
          inverse_n * sum_lanes(n, [from = x.row(r)](auto d, std::int64_t i, auto sum)
                                       HWY_ATTR { return hn::Add(sum, hn::LoadU(d, from + i)); });
    }
    for (std::int64_t r = first; r < first + count; ++r) {
      const Real variance = inverse_n * sum_lanes(n, [from = x.row(r), mean = mean_rstd.row(r)[0]](
                                                         auto d, std::int64_t i, auto sum) HWY_ATTR {
                              const auto centered = hn::Sub(hn::LoadU(d, from + i), hn::Set(d, mean));
                              return hn::MulAdd(centered, centered, sum);
                            });
      mean_rstd.row(r)[1] = 1 / std::sqrt(variance + epsilon);
    }
    for (std::int64_t r = first; r < first + count; ++r) {
      const NormalizedRow<Norm::layer> normal{x.row(r), mean_rstd.row(r)[0], mean_rstd.row(r)[1]};
      lanes(n, [=, to = y.row(r), w = weight.data, b = bias.data](auto d, std::int64_t i) HWY_ATTR {
        hn::StoreU(hn::MulAdd(normal(d, i), hn::LoadU(d, w + i), hn::LoadU(d, b + i)), d, to + i);
      });
    }
  });
}

void layer_norm_backward(GradientView dx, MatrixView dweight, MatrixView dbias, ConstMatrixView dy,
                         ConstMatrixView x, ConstMatrixView weight, ConstMatrixView mean_rstd) {
  const Real inverse_n = Real{1} / static_cast<Real>(x.cols);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    if (dbias.data != nullptr) {
      lanes(x.cols, [g = dy.row(r), to = dbias.data](auto d, std::int64_t i)
                        HWY_ATTR { add_to(d, to + i, hn::LoadU(d, g + i), false); });
    }
    const NormalizedRow<Norm::layer> normal{x.row(r), mean_rstd.row(r)[0], mean_rstd.row(r)[1]};
    norm_row_backward(dx, dweight, dy, weight, r, normal, [=](Real sum) { return inverse_n * sum; });
  }
}

void rms_norm_forward(MatrixView y, MatrixView rrms, ConstMatrixView x, ConstMatrixView weight,
                      Real epsilon) {
  const std::int64_t n = x.cols;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const Real* from = x.row(r);
    const Real factor = 1 / std::sqrt(dot(from, from, n) / static_cast<Real>(n) + epsilon);
    const NormalizedRow<Norm::rms> normal{from, 0, factor};
    lanes(n, [=, to = y.row(r), w = weight.data](auto d, std::int64_t i)
                 HWY_ATTR { hn::StoreU(hn::Mul(normal(d, i), hn::LoadU(d, w + i)), d, to + i); });
    rrms.row(r)[0] = factor;
  }
}

void rms_norm_backward(GradientView dx, MatrixView dweight, ConstMatrixView dy, ConstMatrixView x,
                       ConstMatrixView weight, ConstMatrixView rrms) {
  const auto n = static_cast<Real>(x.cols);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const NormalizedRow<Norm::rms> normal{x.row(r), 0, rrms.row(r)[0]};
    norm_row_backward(dx, dweight, dy, weight, r, normal, [=](Real sum) { return sum / n; });
  }
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, layer_norm_forward,
                 (MatrixView y, MatrixView mean_rstd, ConstMatrixView x, ConstMatrixView weight,
                  ConstMatrixView bias, Real epsilon),
                 y, mean_rstd, x, weight, bias, epsilon)
THIMBLE_DISPATCH(void, layer_norm_backward,
                 (GradientView dx, MatrixView dweight, MatrixView dbias, ConstMatrixView dy,
                  ConstMatrixView x, ConstMatrixView weight, ConstMatrixView mean_rstd),
                 dx, dweight, dbias, dy, x, weight, mean_rstd)
THIMBLE_DISPATCH(void, rms_norm_forward,
                 (MatrixView y, MatrixView rrms, ConstMatrixView x, ConstMatrixView weight, Real epsilon), y,
                 rrms, x, weight, epsilon)
THIMBLE_DISPATCH(void, rms_norm_backward,
                 (GradientView dx, MatrixView dweight, ConstMatrixView dy, ConstMatrixView x,
                  ConstMatrixView weight, ConstMatrixView rrms),
                 dx, dweight, dy, x, weight, rrms)
