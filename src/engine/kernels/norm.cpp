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

// The normalized elements n of a row of x, from what was saved of it.
template <Norm kNorm>
struct NormalizedRow {
  const Real* x;
  const Real* saved;

  template <class D>
  HWY_INLINE auto operator()(D d, std::int64_t i) const {
    const auto v = load(d, x + i);
    if constexpr (kNorm == Norm::rms) return hn::Mul(v, hn::Set(d, factor()));
    return hn::Mul(hn::Sub(v, hn::Set(d, saved[0])), hn::Set(d, factor()));
  }
  Real factor() const { return saved[kNorm == Norm::rms ? 0 : 1]; }
};

// mean(sum) returns the mean over the columns.
template <Norm kNorm, class Mean>
HWY_INLINE void norm_backward(GradientView dx, MatrixView dweight, MatrixView dbias, ConstMatrixView dy,
                              ConstMatrixView x, ConstMatrixView weight, ConstMatrixView saved,
                              const Mean& mean) {
  // y = n w + b,  n = (x - mean x) rstd
  const std::int64_t n = x.cols;
  const Real* const w = weight.data;
  few_rows(x.rows, [&](std::int64_t first, std::int64_t count) HWY_ATTR {
    const std::int64_t end = first + count;
    const auto normal = [&](std::int64_t r) { return NormalizedRow<kNorm>{x.row(r), saved.row(r)}; };
    if (dbias.data != nullptr) {
      lanes(n, [&, to = dbias.data](auto d, std::int64_t i) HWY_ATTR {
        auto sum = load(d, to + i);
        for (std::int64_t r = first; r < end; ++r) sum = hn::Add(sum, load(d, dy.row(r) + i));
        store(sum, d, to + i);
      });
    }
    if (dweight.data != nullptr) {
      lanes(n, [&, to = dweight.data](auto d, std::int64_t i) HWY_ATTR {
        auto sum = load(d, to + i);
        for (std::int64_t r = first; r < end; ++r)
          sum = hn::MulAdd(load(d, dy.row(r) + i), normal(r)(d, i), sum);
        store(sum, d, to + i);
      });
    }
    if (dx.data == nullptr) return;
    Real mean_g[kFewRows] = {}, mean_gn[kFewRows];
    for (std::int64_t r = 0; r < count; ++r) {
      const Real* const g = dy.row(first + r);
      if constexpr (kNorm == Norm::layer) mean_g[r] = mean(dot(g, w, n));
      mean_gn[r] =
          mean(sum_lanes(n, [=, normalized = normal(first + r)](auto d, std::int64_t i, auto sum) HWY_ATTR {
            return hn::MulAdd(hn::Mul(load(d, g + i), load(d, w + i)), normalized(d, i), sum);
          }));
    }
    for (std::int64_t r = 0; r < count; ++r) {
      lanes(n,
            [=, normalized = normal(first + r), g = dy.row(first + r), to = dx.row(first + r),
             empty = dx.uninitialized, m_g = mean_g[r], m_gn = mean_gn[r]](auto d, std::int64_t i) HWY_ATTR {
              auto gradient = hn::Mul(load(d, g + i), load(d, w + i));
              if constexpr (kNorm == Norm::layer) gradient = hn::Sub(gradient, hn::Set(d, m_g));
              const auto rest = hn::NegMulAdd(normalized(d, i), hn::Set(d, m_gn), gradient);
              add_to(d, to + i, hn::Mul(hn::Set(d, normalized.factor()), rest), empty);
            });
    }
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
                                       HWY_ATTR { return hn::Add(sum, load(d, from + i)); });
    }
    for (std::int64_t r = first; r < first + count; ++r) {
      const Real variance = inverse_n * sum_lanes(n, [from = x.row(r), mean = mean_rstd.row(r)[0]](
                                                         auto d, std::int64_t i, auto sum) HWY_ATTR {
                              const auto centered = hn::Sub(load(d, from + i), hn::Set(d, mean));
                              return hn::MulAdd(centered, centered, sum);
                            });
      mean_rstd.row(r)[1] = 1 / std::sqrt(variance + epsilon);
    }
    for (std::int64_t r = first; r < first + count; ++r) {
      const NormalizedRow<Norm::layer> normal{x.row(r), mean_rstd.row(r)};
      lanes(n, [=, to = y.row(r), w = weight.data, b = bias.data](auto d, std::int64_t i)
                   HWY_ATTR { store(hn::MulAdd(normal(d, i), load(d, w + i), load(d, b + i)), d, to + i); });
    }
  });
}

void layer_norm_backward(GradientView dx, MatrixView dweight, MatrixView dbias, ConstMatrixView dy,
                         ConstMatrixView x, ConstMatrixView weight, ConstMatrixView mean_rstd) {
  const Real inverse_n = Real{1} / static_cast<Real>(x.cols);
  norm_backward<Norm::layer>(dx, dweight, dbias, dy, x, weight, mean_rstd,
                             [=](Real sum) { return inverse_n * sum; });
}

void rms_norm_forward(MatrixView y, MatrixView rrms, ConstMatrixView x, ConstMatrixView weight,
                      Real epsilon) {
  const std::int64_t n = x.cols;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const Real* from = x.row(r);
    rrms.row(r)[0] = 1 / std::sqrt(dot(from, from, n) / static_cast<Real>(n) + epsilon);
    const NormalizedRow<Norm::rms> normal{from, rrms.row(r)};
    lanes(n, [=, to = y.row(r), w = weight.data](auto d, std::int64_t i)
                 HWY_ATTR { store(hn::Mul(normal(d, i), load(d, w + i)), d, to + i); });
  }
}

void rms_norm_backward(GradientView dx, MatrixView dweight, ConstMatrixView dy, ConstMatrixView x,
                       ConstMatrixView weight, ConstMatrixView rrms) {
  const auto n = static_cast<Real>(x.cols);
  norm_backward<Norm::rms>(dx, dweight, {}, dy, x, weight, rrms, [=](Real sum) { return sum / n; });
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
