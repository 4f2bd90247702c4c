// The weights of some queries of one head of one sequence, and the gradient of their scores. Toggled guard: see
// simd-inl.h.
#if defined(THIMBLE_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_KERNELS_ATTENTION_INL_H_
#undef THIMBLE_KERNELS_ATTENTION_INL_H_
#else
#define THIMBLE_KERNELS_ATTENTION_INL_H_
#endif

#include <algorithm>

#include "engine/kernels/attention/attention.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/products/gemm-inl.h"
#include "engine/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

// Sets the hidden keys of one sequence.
HWY_INLINE void hide(MatrixView x, std::int64_t sequence, const AttentionMask& mask, Real with = 0) {
  for (std::int64_t i = 0; i < x.rows; ++i)
    std::fill(x.row(i) + mask.visible(sequence, i, x.cols), x.row(i) + x.cols, with);
}

// Computes the visible keys of y = x - slope |i - j|, for one head of one sequence. y may be x.
HWY_INLINE void subtract_distances(MatrixView y, ConstMatrixView x, std::int64_t sequence, std::int64_t head,
                                   const AttentionMask& mask) {
  const Real slope = mask.slopes[static_cast<std::size_t>(head)];
  for (std::int64_t i = 0; i < y.rows; ++i) {
    for (std::int64_t j = 0; j < mask.visible(sequence, i, y.cols); ++j)
      y.row(i)[j] = x.row(i)[j] - slope * static_cast<Real>(std::abs(mask.first_query + i - j));
  }
}

// Computes p = softmax(x) over the visible keys, for one head of one sequence. p may be x.
HWY_INLINE void masked_softmax(MatrixView p, ConstMatrixView x, std::int64_t sequence, std::int64_t head,
                               const AttentionMask& mask) {
  if (!mask.slopes.empty()) {
    subtract_distances(p, x, sequence, head, mask);
    x = p;
  }
  softmax_rows(p, x, [&](std::int64_t i) { return mask.visible(sequence, i, p.cols); });
  hide(p, sequence, mask);
}

// Computes the weights p of queries q on the first p.cols of Tk keys; scaled_keys: scale K^T (Dk, Tk).
HWY_INLINE void weights_of(MatrixView p, ConstMatrixView q, const Real* scaled_keys, std::int64_t sequence,
                           std::int64_t head, const AttentionSizes& s, const AttentionMask& mask) {
  multiply_small<Store::overwrite>(p.data, p.stride, {q.data, q.stride, 1}, scaled_keys, s.keys, p.rows,
                                   p.cols, q.cols);
  s.softmax ? masked_softmax(p, p, sequence, head, mask) : hide(p, sequence, mask);
}

// Computes ds = scale times the gradient of the scores of queries on the first ds.cols of Tk keys, from the
// gradient dout of their outputs, V^T (Dv, Tk), weights p and the dropout of these, if it has data.
HWY_INLINE void score_gradient(MatrixView ds, ConstMatrixView dout, const Real* v_transposed,
                               ConstMatrixView p, ConstMatrixView dropout, std::int64_t sequence,
                               const AttentionSizes& s, const AttentionMask& mask, Real scale) {
  multiply_small<Store::overwrite>(ds.data, ds.stride, {dout.data, dout.stride, 1}, v_transposed, s.keys,
                                   ds.rows, ds.cols, dout.cols);
  if (dropout.data != nullptr) mul_forward(ds, ds, dropout);
  if (s.softmax) {
    softmax_rows_backward({ds, true}, ds, p, scale);
  } else {
    hide(ds, sequence, mask);
    multiply_by(ds.data, scale, ds.elements());
  }
}

// Adds A B to c.
HWY_INLINE void add_product(GradientView c, Left a, ConstMatrixView b) {
  const auto product = c.uninitialized ? multiply_small<Store::overwrite> : multiply_small<Store::add>;
  product(c.data, c.stride, a, b.data, b.stride, c.rows, c.cols, b.rows);
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // THIMBLE_KERNELS_ATTENTION_INL_H_
