// Every kernel as plain loops over its formula, with the signature of the kernel: what the benchmark compares
// with. The formulas and the shapes are in the headers of include/thimble/kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

#include "thimble/kernels/attention.h"
#include "thimble/kernels/cross_entropy.h"
#include "thimble/kernels/dropout.h"
#include "thimble/kernels/elementwise.h"
#include "thimble/kernels/embedding.h"
#include "thimble/kernels/gelu.h"
#include "thimble/kernels/gemm.h"
#include "thimble/kernels/layer_norm.h"
#include "thimble/kernels/linear.h"
#include "thimble/kernels/optimizer.h"
#include "thimble/kernels/pool.h"
#include "thimble/kernels/rms_norm.h"
#include "thimble/kernels/softmax.h"

namespace thimble::inline THIMBLE_PRECISION::naive {

using kernels::AttentionMask, kernels::Op;
using Tokens = std::span<const std::int32_t>;

template <class T>
T& at(BasicMatrixView<T> x, std::int64_t r, std::int64_t c) {
  return x.row(r)[c];
}

inline void add(GradientView sum, std::int64_t r, std::int64_t c, Real value) {
  at<Real>(sum, r, c) = (sum.uninitialized ? 0 : at<Real>(sum, r, c)) + value;
}

// f(r, c) for every element of x.
template <class View, class F>
void each(const View& x, const F& f) {
  for (std::int64_t r = 0; r < x.rows; ++r)
    for (std::int64_t c = 0; c < x.cols; ++c) f(r, c);
}

// The sum of f(i) for i below n.
template <class F>
Real sum(std::int64_t n, const F& f) {
  Real total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += f(i);
  return total;
}

inline void gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha,
                 Real beta) {
  const bool ta = op_a == Op::transpose, tb = op_b == Op::transpose;
  const std::int64_t depth = ta ? a.rows : a.cols;
  each(c, [&](auto i, auto j) {
    const Real product = alpha * sum(depth, [&](auto k) {
                           return (ta ? at(a, k, i) : at(a, i, k)) * (tb ? at(b, j, k) : at(b, k, j));
                         });
    at(c, i, j) = product + (beta == 0 ? 0 : beta * at(c, i, j));
  });
}

inline void transpose(MatrixView to, ConstMatrixView from) {
  each(to, [&](auto r, auto c) { at(to, r, c) = at(from, c, r); });
}

inline void linear_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weight, ConstMatrixView,
                           ConstMatrixView bias) {
  each(y, [&](auto r, auto o) {
    at(y, r, o) = at(bias, 0, o) + sum(x.cols, [&](auto i) { return at(x, r, i) * at(weight, o, i); });
  });
}
inline void linear_backward(GradientView dx, GradientView dweight, MatrixView dbias, ConstMatrixView dy,
                            ConstMatrixView x, ConstMatrixView weight) {
  each(dx, [&](auto r, auto i) {
    add(dx, r, i, sum(dy.cols, [&](auto o) { return at(dy, r, o) * at(weight, o, i); }));
  });
  each(dweight, [&](auto o, auto i) {
    add(dweight, o, i, sum(dy.rows, [&](auto r) { return at(dy, r, o) * at(x, r, i); }));
  });
  each(dy, [&](auto r, auto o) { at(dbias, 0, o) += at(dy, r, o); });
}

// exp(x - max) / sum of that over the first n elements of a row.
inline void softmax_row(Real* y, const Real* x, std::int64_t n) {
  const Real max = *std::max_element(x, x + n);
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i] - max);
  const Real total = sum(n, [&](auto i) { return y[i]; });
  for (std::int64_t i = 0; i < n; ++i) y[i] /= total;
}

inline void softmax_forward(MatrixView y, ConstMatrixView x) {
  for (std::int64_t r = 0; r < x.rows; ++r) softmax_row(y.row(r), x.row(r), x.cols);
}
inline void softmax_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y) {
  for (std::int64_t r = 0; r < dx.rows; ++r) {
    const Real mean = sum(dx.cols, [&](auto c) { return at(dy, r, c) * at(y, r, c); });
    for (std::int64_t c = 0; c < dx.cols; ++c) add(dx, r, c, at(y, r, c) * (at(dy, r, c) - mean));
  }
}

// The rows and columns of a head: f(sequence, head).
template <class F>
void each_head(const AttentionSizes& s, const F& f) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h) f(b, h);
}
template <class View>
View block(View x, std::int64_t b, std::int64_t h, const AttentionSizes& s) {
  const std::int64_t length = x.rows / s.batch, columns = x.cols / s.heads;
  return x.row_block(b * length, length).column_block(h * columns, columns);
}
template <class View>
View rows_of(View weights, std::int64_t b, std::int64_t h, const AttentionSizes& s) {
  return weights.row_block((b * s.heads + h) * s.queries, s.queries);
}

inline void attention_weights_forward(MatrixView weights, ConstMatrixView q, ConstMatrixView k, Real*,
                                      const AttentionSizes& s, const AttentionMask& mask, Real scale) {
  each_head(s, [&](auto b, auto h) {
    const ConstMatrixView qh = block(q, b, h, s), kh = block(k, b, h, s);
    const MatrixView p = rows_of(weights, b, h, s);
    each(p, [&](auto i, auto j) {
      at(p, i, j) = scale * sum(qh.cols, [&](auto c) { return at(qh, i, c) * at(kh, j, c); });
    });
    for (std::int64_t i = 0; i < p.rows; ++i) {
      const std::int64_t visible = mask.visible(b, i, s.keys);
      softmax_row(p.row(i), p.row(i), visible);
      std::fill(p.row(i) + visible, p.row(i) + s.keys, Real{0});
    }
  });
}
inline void attention_mix_forward(MatrixView out, ConstMatrixView weights, ConstMatrixView v,
                                  const AttentionSizes& s) {
  each_head(s, [&](auto b, auto h) {
    const ConstMatrixView p = rows_of(weights, b, h, s), vh = block(v, b, h, s);
    const MatrixView o = block(out, b, h, s);
    each(o, [&](auto i, auto c) {
      at(o, i, c) = sum(s.keys, [&](auto j) { return at(p, i, j) * at(vh, j, c); });
    });
  });
}
// Without dropout.
inline void attention_backward(GradientView dq, GradientView dk, GradientView dv, ConstMatrixView dout,
                               ConstMatrixView q, ConstMatrixView k, ConstMatrixView v,
                               ConstMatrixView weights, ConstMatrixView mixed, ConstMatrixView, Real* scratch,
                               const AttentionSizes& s, Real scale) {
  const MatrixView ds{scratch, s.queries, s.keys, s.keys};
  each_head(s, [&](auto b, auto h) {
    const ConstMatrixView g = block(dout, b, h, s), qh = block(q, b, h, s), kh = block(k, b, h, s);
    const ConstMatrixView vh = block(v, b, h, s), p = rows_of(weights, b, h, s), m = rows_of(mixed, b, h, s);
    each(ds, [&](auto i, auto j) {
      at(ds, i, j) = sum(g.cols, [&](auto c) { return at(g, i, c) * at(vh, j, c); });
    });
    softmax_backward({ds, true}, ds, p);
    const GradientView to_q = block(dq, b, h, s), to_k = block(dk, b, h, s), to_v = block(dv, b, h, s);
    each(to_q, [&](auto i, auto c) {
      add(to_q, i, c, scale * sum(s.keys, [&](auto j) { return at(ds, i, j) * at(kh, j, c); }));
    });
    each(to_k, [&](auto j, auto c) {
      add(to_k, j, c, scale * sum(s.queries, [&](auto i) { return at(ds, i, j) * at(qh, i, c); }));
    });
    each(to_v, [&](auto j, auto c) {
      add(to_v, j, c, sum(s.queries, [&](auto i) { return at(m, i, j) * at(g, i, c); }));
    });
  });
}

inline void layer_norm_forward(MatrixView y, MatrixView statistics, ConstMatrixView x, ConstMatrixView weight,
                               ConstMatrixView bias, Real epsilon) {
  const auto n = static_cast<Real>(x.cols);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const Real mean = sum(x.cols, [&](auto c) { return at(x, r, c); }) / n;
    const auto squared = [&](auto c) { return (at(x, r, c) - mean) * (at(x, r, c) - mean); };
    const Real rstd = 1 / std::sqrt(sum(x.cols, squared) / n + epsilon);
    for (std::int64_t c = 0; c < x.cols; ++c)
      at(y, r, c) = (at(x, r, c) - mean) * rstd * at(weight, 0, c) + at(bias, 0, c);
    at(statistics, r, 0) = mean;
    at(statistics, r, 1) = rstd;
  }
}
inline void layer_norm_backward(GradientView dx, MatrixView dweight, MatrixView dbias, ConstMatrixView dy,
                                ConstMatrixView x, ConstMatrixView weight, ConstMatrixView statistics) {
  const auto size = static_cast<Real>(x.cols);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const Real mean = at(statistics, r, 0), rstd = at(statistics, r, 1);
    const auto n = [&](auto c) { return (at(x, r, c) - mean) * rstd; };
    const auto g = [&](auto c) { return at(dy, r, c) * at(weight, 0, c); };
    const Real mean_g = sum(x.cols, g) / size;
    const Real mean_gn = sum(x.cols, [&](auto c) { return g(c) * n(c); }) / size;
    for (std::int64_t c = 0; c < x.cols; ++c) {
      at(dbias, 0, c) += at(dy, r, c);
      at(dweight, 0, c) += at(dy, r, c) * n(c);
      add(dx, r, c, rstd * (g(c) - mean_g - n(c) * mean_gn));
    }
  }
}

inline void rms_norm_forward(MatrixView y, MatrixView rrms, ConstMatrixView x, ConstMatrixView weight,
                             Real epsilon) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const Real squares = sum(x.cols, [&](auto c) { return at(x, r, c) * at(x, r, c); });
    at(rrms, r, 0) = 1 / std::sqrt(squares / static_cast<Real>(x.cols) + epsilon);
    for (std::int64_t c = 0; c < x.cols; ++c) at(y, r, c) = at(x, r, c) * at(rrms, r, 0) * at(weight, 0, c);
  }
}
inline void rms_norm_backward(GradientView dx, MatrixView dweight, ConstMatrixView dy, ConstMatrixView x,
                              ConstMatrixView weight, ConstMatrixView rrms) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const auto n = [&](auto c) { return at(x, r, c) * at(rrms, r, 0); };
    const auto g = [&](auto c) { return at(dy, r, c) * at(weight, 0, c); };
    const Real mean_gn = sum(x.cols, [&](auto c) { return g(c) * n(c); }) / static_cast<Real>(x.cols);
    for (std::int64_t c = 0; c < x.cols; ++c) {
      at(dweight, 0, c) += at(dy, r, c) * n(c);
      add(dx, r, c, at(rrms, r, 0) * (g(c) - n(c) * mean_gn));
    }
  }
}

inline void gelu_erf_forward(MatrixView y, MatrixView slope, ConstMatrixView x) {
  constexpr Real kRootHalf = std::numbers::sqrt2_v<Real> / 2;
  constexpr Real kDensity = std::numbers::inv_sqrtpi_v<Real> * kRootHalf;  // 1 / sqrt(2 pi)
  each(x, [&](auto r, auto c) {
    const Real v = at(x, r, c), distribution = std::erfc(-v * kRootHalf) / 2;
    at(y, r, c) = v * distribution;
    at(slope, r, c) = distribution + v * kDensity * std::exp(-v * v / 2);
  });
}
inline void gelu_tanh_forward(MatrixView y, MatrixView slope, ConstMatrixView x) {
  constexpr Real kRoot = std::numbers::inv_sqrtpi_v<Real> * std::numbers::sqrt2_v<Real>;  // sqrt(2 / pi)
  constexpr Real kCubic = static_cast<Real>(0.044715);
  each(x, [&](auto r, auto c) {
    const Real v = at(x, r, c), t = std::tanh(kRoot * (v + kCubic * v * v * v));
    at(y, r, c) = v / 2 * (1 + t);
    at(slope, r, c) = (1 + t) / 2 + v / 2 * (1 - t * t) * kRoot * (1 + 3 * kCubic * v * v);
  });
}
inline void silu_forward(MatrixView y, MatrixView slope, ConstMatrixView x) {
  each(x, [&](auto r, auto c) {
    const Real v = at(x, r, c), s = 1 / (1 + std::exp(-v));
    at(y, r, c) = v * s;
    at(slope, r, c) = s + v * s * (1 - s);
  });
}

inline void add_forward(MatrixView y, ConstMatrixView a, ConstMatrixView b) {
  each(y, [&](auto r, auto c) { at(y, r, c) = at(a, r, c) + at(b, r, c); });
}
inline void accumulate(GradientView dx, ConstMatrixView dy) {
  each(dx, [&](auto r, auto c) { add(dx, r, c, at(dy, r, c)); });
}
inline void multiply_forward(MatrixView y, ConstMatrixView a, ConstMatrixView b) {
  each(y, [&](auto r, auto c) { at(y, r, c) = at(a, r, c) * at(b, r, c); });
}
inline void multiply_backward(GradientView da, ConstMatrixView dy, ConstMatrixView b) {
  each(da, [&](auto r, auto c) { add(da, r, c, at(dy, r, c) * at(b, r, c)); });
}
inline void scale_forward(MatrixView y, ConstMatrixView x, Real factor) {
  each(y, [&](auto r, auto c) { at(y, r, c) = factor * at(x, r, c); });
}
inline void scale_backward(GradientView dx, ConstMatrixView dy, Real factor) {
  each(dx, [&](auto r, auto c) { add(dx, r, c, factor * at(dy, r, c)); });
}
inline void relu_forward(MatrixView y, ConstMatrixView x) {
  each(y, [&](auto r, auto c) { at(y, r, c) = at(x, r, c) < 0 ? 0 : at(x, r, c); });
}
inline void relu_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y) {
  each(dx, [&](auto r, auto c) { add(dx, r, c, at(y, r, c) > 0 ? at(dy, r, c) : 0); });
}
inline void tanh_forward(MatrixView y, ConstMatrixView x) {
  each(y, [&](auto r, auto c) { at(y, r, c) = std::tanh(at(x, r, c)); });
}
inline void tanh_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y) {
  each(dx, [&](auto r, auto c) { add(dx, r, c, at(dy, r, c) * (1 - at(y, r, c) * at(y, r, c))); });
}

inline void dropout_factors(MatrixView factor, Real p, const kernels::DropoutKey& key,
                            std::int64_t rows_per_sample) {
  each(factor, [&](auto r, auto c) {
    const auto sample = static_cast<std::uint32_t>(r / rows_per_sample);
    const auto i = static_cast<std::uint32_t>(r % rows_per_sample * factor.cols + c);
    const std::uint64_t counter = std::uint64_t{key.step} << 32 | (key.first_sample + sample);
    const std::uint32_t word = key.random.words(counter, i / 4, key.site)[i % 4];
    at(factor, r, c) = word < static_cast<double>(p) * 0x1p32 ? 0 : 1 / (1 - p);
  });
}

inline void embedding_forward(MatrixView y, ConstMatrixView table, Tokens tokens) {
  each(y, [&](auto r, auto c) { at(y, r, c) = at(table, tokens[static_cast<std::size_t>(r)], c); });
}
inline void embedding_backward(MatrixView dtable, ConstMatrixView dy, Tokens tokens) {
  each(dy, [&](auto r, auto c) { at(dtable, tokens[static_cast<std::size_t>(r)], c) += at(dy, r, c); });
}
inline void add_positions_forward(MatrixView y, ConstMatrixView x, ConstMatrixView positions,
                                  std::int64_t length) {
  each(y, [&](auto r, auto c) { at(y, r, c) = at(x, r, c) + at(positions, r % length, c); });
}
inline void add_positions_backward(MatrixView dpositions, ConstMatrixView dy, std::int64_t length) {
  each(dy, [&](auto r, auto c) { at(dpositions, r % length, c) += at(dy, r, c); });
}

inline void pool_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weights) {
  each(y, [&](auto b, auto c) {
    at(y, b, c) =
        sum(weights.cols, [&](auto t) { return at(weights, b, t) * at(x, b * weights.cols + t, c); });
  });
}
inline void pool_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView weights) {
  each(dx, [&](auto r, auto c) {
    const std::int64_t b = r / weights.cols, t = r % weights.cols;
    add(dx, r, c, at(weights, b, t) * at(dy, b, c));
  });
}

// Without smoothing.
inline double cross_entropy_forward(MatrixView slope, ConstMatrixView logits, Tokens labels, Real,
                                    Real weight) {
  double loss = 0;
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    Real* p = slope.row(r);
    const std::int32_t label = labels[static_cast<std::size_t>(r)];
    softmax_row(p, logits.row(r), logits.cols);
    loss -= static_cast<double>(weight * std::log(p[label]));
    for (std::int64_t c = 0; c < logits.cols; ++c) p[c] = weight * (p[c] - (c == label ? 1 : 0));
  }
  return loss;
}

inline void adam_step(std::span<Real> p, std::span<Real> m, std::span<Real> v, std::span<const Real> gradient,
                      const kernels::AdamFactors& f) {
  for (std::size_t i = 0; i < p.size(); ++i) {
    const Real g = f.gradient_scale * gradient[i] + f.l2 * p[i];
    m[i] = f.beta1 * m[i] + (1 - f.beta1) * g;
    v[i] = f.beta2 * v[i] + (1 - f.beta2) * g * g;
    p[i] = f.shrink * p[i] - f.lr * m[i] / (std::sqrt(v[i]) * f.root_correction + f.epsilon);
  }
}
inline double sum_of_squares(std::span<const Real> x) {
  double total = 0;
  for (const Real value : x) total += static_cast<double>(value) * static_cast<double>(value);
  return total;
}

}  // namespace thimble::inline THIMBLE_PRECISION::naive
