// Softmax, row by row. Toggled guard: see simd-inl.h.
#if defined(THIMBLE_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_KERNELS_SOFTMAX_INL_H_
#undef THIMBLE_KERNELS_SOFTMAX_INL_H_
#else
#define THIMBLE_KERNELS_SOFTMAX_INL_H_
#endif

#include "engine/kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

HWY_INLINE void multiply_by(Real* x, Real factor, std::int64_t n) {
  lanes(n, [=](auto d, std::int64_t i)
               HWY_ATTR { store(hn::Mul(load(d, x + i), hn::Set(d, factor)), d, x + i); });
}

// Computes y = exp(x - max) for n values up to max, and returns partial sums of y. y may be x.
HWY_INLINE auto exp_shifted(Real* y, const Real* x, Real max, std::int64_t n) {
  return partial_sums(n, [=](auto d, std::int64_t i, auto sum) HWY_ATTR {
    const auto e = exp_up_to_88(d, hn::Sub(load(d, x + i), hn::Set(d, max)));
    store(e, d, y + i);
    return hn::Add(sum, e);
  });
}

// Computes y = softmax(x) of the first length(i) >= 0 values of each row i. y may be x.
template <class Length>
HWY_INLINE void softmax_rows(MatrixView y, ConstMatrixView x, const Length& length) {
  few_rows(y.rows, [&](std::int64_t first, std::int64_t count) HWY_ATTR {
    const Wide d;
    std::int64_t n[kFewRows];
    Real max[kFewRows], inverse[kFewRows];
    HWY_ALIGN Real sums[kFewRows * hn::MaxLanes(Wide())];
    for (std::int64_t r = 0; r < count; ++r) {
      n[r] = length(first + r);
      max[r] = n[r] > 0 ? max_of(x.row(first + r), n[r]) : 0;
    }
    for (std::int64_t r = 0; r < count; ++r)
      hn::Store(exp_shifted(y.row(first + r), x.row(first + r), max[r], n[r]), d, sums + r * width(d));
    for (std::int64_t r = 0; r < count; ++r)
      inverse[r] = 1 / sum_of_halves(d, hn::Load(d, sums + r * width(d)));
    for (std::int64_t r = 0; r < count; ++r) multiply_by(y.row(first + r), inverse[r], n[r]);
  });
}

// Adds factor y_i (dy_i - sum_j dy_j y_j), row by row.
HWY_INLINE void softmax_rows_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y, Real factor) {
  // y_i = exp(x_i - m) / sum_j exp(x_j - m)
  few_rows(y.rows, [&](std::int64_t first, std::int64_t count) HWY_ATTR {
    Real mean[kFewRows];
    for (std::int64_t r = 0; r < count; ++r) mean[r] = dot(dy.row(first + r), y.row(first + r), y.cols);
    for (std::int64_t r = 0; r < count; ++r) {
      lanes(y.cols, [=, empty = dx.uninitialized, to = dx.row(first + r), g = dy.row(first + r),
                     p = y.row(first + r), m = mean[r]](auto d, std::int64_t i) HWY_ATTR {
        const auto centered = hn::Sub(load(d, g + i), hn::Set(d, m));
        add_to(d, to + i, hn::Mul(hn::Mul(load(d, p + i), centered), hn::Set(d, factor)), empty);
      });
    }
  });
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // THIMBLE_KERNELS_SOFTMAX_INL_H_
