// Every kernel as plain loops over its formula, with the parameters of the kernel, for views of any number
// type: tests run them in long double, the benchmark in Real. The formulas and the shapes are in
// src/engine/kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <type_traits>

#include "engine/kernels/dropout.h"
#include "engine/kernels/optimizer.h"
#include "thimble/engine/gemm.h"
#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace reference {

using kernels::Op;
using Tokens = std::span<const std::int32_t>;

template <class T>
T& at(const BasicMatrixView<T>& x, std::int64_t r, std::int64_t c) {
  return x.row(r)[c];
}

// The type of the elements of a view.
template <class View>
using Number = std::remove_const_t<std::remove_pointer_t<decltype(View::data)>>;

// Adds to an element of a gradient, or sets it where nothing was added yet.
template <class Gradient>
void add(const Gradient& sum, std::int64_t r, std::int64_t c, Number<Gradient> value) {
  if constexpr (requires { sum.uninitialized; }) {
    if (sum.uninitialized) at(sum, r, c) = 0;
  }
  at(sum, r, c) += value;
}

// Calls f(r, c) for every element of x.
template <class View, class F>
void each(const View& x, const F& f) {
  for (std::int64_t r = 0; r < x.rows; ++r)
    for (std::int64_t c = 0; c < x.cols; ++c) f(r, c);
}

// Returns the sum of f(i) for i below n.
template <class F>
auto sum(std::int64_t n, const F& f) {
  std::decay_t<decltype(f(n))> total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += f(i);
  return total;
}

inline void gemm_add(auto c, auto a, Op op_a, auto b, Op op_b) {
  const bool ta = op_a == Op::transpose, tb = op_b == Op::transpose;
  const std::int64_t depth = ta ? a.rows : a.cols;
  each(c, [&](auto i, auto j) {
    add(c, i, j, sum(depth, [&](auto k) {
          return (ta ? at(a, k, i) : at(a, i, k)) * (tb ? at(b, j, k) : at(b, k, j));
        }));
  });
}

inline void linear_forward(auto y, auto x, auto weight, auto, auto bias) {
  each(y, [&](auto r, auto o) {
    at(y, r, o) = at(bias, 0, o) + sum(x.cols, [&](auto i) { return at(x, r, i) * at(weight, o, i); });
  });
}
inline void linear_backward(auto dx, auto dweight, auto dbias, auto dy, auto x, auto weight, auto) {
  each(dx, [&](auto r, auto i) {
    add(dx, r, i, sum(dy.cols, [&](auto o) { return at(dy, r, o) * at(weight, o, i); }));
  });
  each(dweight, [&](auto o, auto i) {
    add(dweight, o, i, sum(dy.rows, [&](auto r) { return at(dy, r, o) * at(x, r, i); }));
  });
  each(dy, [&](auto r, auto o) { at(dbias, 0, o) += at(dy, r, o); });
}

// Computes exp(x - max) / sum exp(x - max) over the first n elements of a row.
inline void softmax_row(auto* y, const auto* x, std::int64_t n) {
  if (n == 0) return;
  const auto max = *std::max_element(x, x + n);
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i] - max);
  const auto total = sum(n, [&](auto i) { return y[i]; });
  for (std::int64_t i = 0; i < n; ++i) y[i] /= total;
}

inline void softmax_forward(auto y, auto x) {
  for (std::int64_t r = 0; r < x.rows; ++r) softmax_row(y.row(r), x.row(r), x.cols);
}
inline void softmax_backward(auto dx, auto dy, auto y) {
  for (std::int64_t r = 0; r < dx.rows; ++r) {
    const auto mean = sum(dx.cols, [&](auto c) { return at(dy, r, c) * at(y, r, c); });
    for (std::int64_t c = 0; c < dx.cols; ++c) add(dx, r, c, at(y, r, c) * (at(dy, r, c) - mean));
  }
}

inline void layer_norm_forward(auto y, auto mean_rstd, auto x, auto weight, auto bias, auto epsilon) {
  const auto n = static_cast<Number<decltype(y)>>(x.cols);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const auto mean = sum(x.cols, [&](auto c) { return at(x, r, c); }) / n;
    const auto squared = [&](auto c) { return (at(x, r, c) - mean) * (at(x, r, c) - mean); };
    const auto rstd = 1 / std::sqrt(sum(x.cols, squared) / n + epsilon);
    for (std::int64_t c = 0; c < x.cols; ++c)
      at(y, r, c) = (at(x, r, c) - mean) * rstd * at(weight, 0, c) + at(bias, 0, c);
    at(mean_rstd, r, 0) = mean;
    at(mean_rstd, r, 1) = rstd;
  }
}
inline void layer_norm_backward(auto dx, auto dweight, auto dbias, auto dy, auto x, auto weight,
                                auto mean_rstd) {
  const auto size = static_cast<Number<decltype(x)>>(x.cols);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const auto mean = at(mean_rstd, r, 0), rstd = at(mean_rstd, r, 1);
    const auto n = [&](auto c) { return (at(x, r, c) - mean) * rstd; };
    const auto g = [&](auto c) { return at(dy, r, c) * at(weight, 0, c); };
    const auto mean_g = sum(x.cols, g) / size;
    const auto mean_gn = sum(x.cols, [&](auto c) { return g(c) * n(c); }) / size;
    for (std::int64_t c = 0; c < x.cols; ++c) {
      at(dbias, 0, c) += at(dy, r, c);
      at(dweight, 0, c) += at(dy, r, c) * n(c);
      add(dx, r, c, rstd * (g(c) - mean_g - n(c) * mean_gn));
    }
  }
}

inline void rms_norm_forward(auto y, auto rrms, auto x, auto weight, auto epsilon) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const auto squares = sum(x.cols, [&](auto c) { return at(x, r, c) * at(x, r, c); });
    at(rrms, r, 0) = 1 / std::sqrt(squares / static_cast<Number<decltype(x)>>(x.cols) + epsilon);
    for (std::int64_t c = 0; c < x.cols; ++c) at(y, r, c) = at(x, r, c) * at(rrms, r, 0) * at(weight, 0, c);
  }
}
inline void rms_norm_backward(auto dx, auto dweight, auto dy, auto x, auto weight, auto rrms) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const auto n = [&](auto c) { return at(x, r, c) * at(rrms, r, 0); };
    const auto g = [&](auto c) { return at(dy, r, c) * at(weight, 0, c); };
    const auto mean_gn =
        sum(x.cols, [&](auto c) { return g(c) * n(c); }) / static_cast<Number<decltype(x)>>(x.cols);
    for (std::int64_t c = 0; c < x.cols; ++c) {
      at(dweight, 0, c) += at(dy, r, c) * n(c);
      add(dx, r, c, at(rrms, r, 0) * (g(c) - n(c) * mean_gn));
    }
  }
}

inline void gelu_erf_forward(auto y, auto derivative, auto x) {
  using T = Number<decltype(y)>;
  constexpr T kRootHalf = std::numbers::sqrt2_v<T> / 2;
  constexpr T kDensity = std::numbers::inv_sqrtpi_v<T> * kRootHalf;  // 1 / sqrt(2 pi)
  each(x, [&](auto r, auto c) {
    const T v = at(x, r, c), distribution = std::erfc(-v * kRootHalf) / 2;
    at(y, r, c) = v * distribution;
    at(derivative, r, c) = distribution + v * kDensity * std::exp(-v * v / 2);
  });
}
inline void gelu_tanh_forward(auto y, auto derivative, auto x) {
  using T = Number<decltype(y)>;
  constexpr T kRoot = std::numbers::inv_sqrtpi_v<T> * std::numbers::sqrt2_v<T>;  // sqrt(2 / pi)
  constexpr T kCubic = static_cast<T>(0.044715L);
  each(x, [&](auto r, auto c) {
    const T v = at(x, r, c), t = std::tanh(kRoot * (v + kCubic * v * v * v));
    at(y, r, c) = v / 2 * (1 + t);
    at(derivative, r, c) = (1 + t) / 2 + v / 2 * (1 - t * t) * kRoot * (1 + 3 * kCubic * v * v);
  });
}
inline void silu_forward(auto y, auto derivative, auto x) {
  each(x, [&](auto r, auto c) {
    const auto v = at(x, r, c), s = 1 / (1 + std::exp(-v));
    at(y, r, c) = v * s;
    at(derivative, r, c) = s + v * s * (1 - s);
  });
}

inline void add_forward(auto y, auto a, auto b) {
  each(y, [&](auto r, auto c) { at(y, r, c) = at(a, r, c) + at(b, r, c); });
}
inline void accumulate(auto dx, auto dy) {
  each(dx, [&](auto r, auto c) { add(dx, r, c, at(dy, r, c)); });
}
inline void mul_forward(auto y, auto a, auto b) {
  each(y, [&](auto r, auto c) { at(y, r, c) = at(a, r, c) * at(b, r, c); });
}
inline void mul_backward(auto da, auto dy, auto b) {
  each(da, [&](auto r, auto c) { add(da, r, c, at(dy, r, c) * at(b, r, c)); });
}
inline void scale_forward(auto y, auto x, auto factor) {
  each(y, [&](auto r, auto c) { at(y, r, c) = factor * at(x, r, c); });
}
inline void scale_backward(auto dx, auto dy, auto factor) {
  each(dx, [&](auto r, auto c) { add(dx, r, c, factor * at(dy, r, c)); });
}
inline void relu_forward(auto y, auto x) {
  each(y, [&](auto r, auto c) { at(y, r, c) = at(x, r, c) < 0 ? 0 : at(x, r, c); });
}
inline void relu_backward(auto dx, auto dy, auto y) {
  each(dx, [&](auto r, auto c) { add(dx, r, c, at(y, r, c) > 0 ? at(dy, r, c) : 0); });
}
inline void tanh_forward(auto y, auto x) {
  each(y, [&](auto r, auto c) { at(y, r, c) = std::tanh(at(x, r, c)); });
}
inline void tanh_backward(auto dx, auto dy, auto y) {
  each(dx, [&](auto r, auto c) { add(dx, r, c, at(dy, r, c) * (1 - at(y, r, c) * at(y, r, c))); });
}

inline void dropout_factors(auto factor, auto p, const kernels::DropoutKey& key,
                            std::int64_t rows_per_sample) {
  each(factor, [&](auto r, auto c) {
    const auto sample = static_cast<std::uint32_t>(r / rows_per_sample);
    const auto i = static_cast<std::uint32_t>(r % rows_per_sample * factor.cols + c);
    const std::uint64_t counter = std::uint64_t{key.step} << 32 | (key.first_sample + sample);
    const std::uint32_t word = key.random.words(counter, i / 4, key.site)[i % 4];
    at(factor, r, c) = word < static_cast<double>(p) * 0x1p32 ? 0 : 1 / (1 - p);
  });
}

inline void embedding_forward(auto y, auto table, Tokens tokens) {
  each(y, [&](auto r, auto c) { at(y, r, c) = at(table, tokens[static_cast<std::size_t>(r)], c); });
}
inline void embedding_backward(auto dtable, auto dy, Tokens tokens) {
  each(dy, [&](auto r, auto c) { at(dtable, tokens[static_cast<std::size_t>(r)], c) += at(dy, r, c); });
}
inline void add_positions_forward(auto y, auto x, auto positions, std::int64_t length) {
  each(y, [&](auto r, auto c) { at(y, r, c) = at(x, r, c) + at(positions, r % length, c); });
}
inline void add_positions_backward(auto dpositions, auto dy, std::int64_t length) {
  each(dy, [&](auto r, auto c) { at(dpositions, r % length, c) += at(dy, r, c); });
}

inline void pool_forward(auto y, auto x, auto weights) {
  each(y, [&](auto b, auto c) {
    at(y, b, c) =
        sum(weights.cols, [&](auto t) { return at(weights, b, t) * at(x, b * weights.cols + t, c); });
  });
}
inline void pool_backward(auto dx, auto dy, auto weights) {
  each(dx, [&](auto r, auto c) {
    const std::int64_t b = r / weights.cols, t = r % weights.cols;
    add(dx, r, c, at(weights, b, t) * at(dy, b, c));
  });
}

inline double cross_entropy_forward(auto dlogits, auto logits, Tokens labels, auto smoothing, auto weight) {
  using T = Number<decltype(dlogits)>;
  const auto even = static_cast<T>(smoothing) / static_cast<T>(logits.cols);
  double loss = 0;
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    T* p = dlogits.row(r);
    const std::int32_t label = labels[static_cast<std::size_t>(r)];
    if (label >= 0) softmax_row(p, logits.row(r), logits.cols);
    for (std::int64_t c = 0; c < logits.cols; ++c) {
      const T target = even + (c == label ? 1 - static_cast<T>(smoothing) : 0);
      if (label >= 0 && target != 0) loss -= static_cast<double>(weight * target * std::log(p[c]));
      p[c] = label < 0 ? 0 : weight * (p[c] - target);
    }
  }
  return loss;
}

inline void adam_step(auto p, auto m, auto v, auto gradient, const kernels::AdamFactors& f) {
  for (std::size_t i = 0; i < p.size(); ++i) {
    const auto g = f.gradient_scale * gradient[i] + f.l2 * p[i];
    m[i] = f.beta1 * m[i] + (1 - f.beta1) * g;
    v[i] = f.beta2 * v[i] + (1 - f.beta2) * g * g;
    p[i] = f.shrink * p[i] - f.lr * m[i] / (std::sqrt(v[i]) * f.root_correction + f.epsilon);
  }
}
inline double sum_of_squares(auto x) {
  double total = 0;
  for (const auto value : x) total += static_cast<double>(value) * static_cast<double>(value);
  return total;
}

}  // namespace reference
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
