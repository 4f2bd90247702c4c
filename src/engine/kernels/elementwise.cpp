// Element-wise kernels.
//   add      y = a + b         da += dy, db += dy
//   scale    y = f x           dx += f dy
//   mul      y = a b           da += dy b, db += dy a    saved: a, b
//   ReLU     y = max(x, 0)     dx += dy [y > 0]          saved: y
//   tanh     y = tanh x        dx += dy (1 - y^2)        saved: y
#include "engine/kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/elementwise.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/math/math-inl.h>
#include "engine/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

// Computes y[r][i] = f(d, x[r][i]).
template <class F>
HWY_INLINE void map(MatrixView y, ConstMatrixView x, const F& f) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    lanes(y.cols, [&, to = y.row(r), from = x.row(r)](auto d, std::int64_t i)
                      HWY_ATTR { store(f(d, load(d, from + i)), d, to + i); });
  }
}

// Computes y[r][i] = f(d, a[r][i], b[r][i]).
template <class F>
HWY_INLINE void map2(MatrixView y, ConstMatrixView a, ConstMatrixView b, const F& f) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    lanes(y.cols, [&, to = y.row(r), p = a.row(r), q = b.row(r)](auto d, std::int64_t i)
                      HWY_ATTR { store(f(d, load(d, p + i), load(d, q + i)), d, to + i); });
  }
}

// Adds dx[r][i] += f(d, dy[r][i]).
template <class F>
HWY_INLINE void update(GradientView dx, ConstMatrixView dy, const F& f) {
  for (std::int64_t r = 0; r < dx.rows; ++r) {
    lanes(dx.cols, [&, to = dx.row(r), g = dy.row(r)](auto d, std::int64_t i)
                       HWY_ATTR { add_to(d, to + i, f(d, load(d, g + i)), dx.uninitialized); });
  }
}

// Adds dx[r][i] += f(d, dy[r][i], saved[r][i]).
template <class F>
HWY_INLINE void update2(GradientView dx, ConstMatrixView dy, ConstMatrixView saved, const F& f) {
  for (std::int64_t r = 0; r < dx.rows; ++r) {
    lanes(dx.cols, [&, to = dx.row(r), g = dy.row(r), s = saved.row(r)](auto d, std::int64_t i) HWY_ATTR {
      add_to(d, to + i, f(d, load(d, g + i), load(d, s + i)), dx.uninitialized);
    });
  }
}

void add_forward(MatrixView y, ConstMatrixView a, ConstMatrixView b) {
  map2(y, a, b, [](auto, auto p, auto q) HWY_ATTR { return hn::Add(p, q); });
}

void accumulate(GradientView dx, ConstMatrixView dy) {
  update(dx, dy, [](auto, auto g) HWY_ATTR { return g; });
}

void scale_forward(MatrixView y, ConstMatrixView x, Real factor) {
  map(y, x, [factor](auto d, auto v) HWY_ATTR { return hn::Mul(hn::Set(d, factor), v); });
}

void scale_backward(GradientView dx, ConstMatrixView dy, Real factor) {
  update(dx, dy, [factor](auto d, auto g) HWY_ATTR { return hn::Mul(hn::Set(d, factor), g); });
}

void mul_forward(MatrixView y, ConstMatrixView a, ConstMatrixView b) {
  map2(y, a, b, [](auto, auto p, auto q) HWY_ATTR { return hn::Mul(p, q); });
}

void mul_backward(GradientView da, ConstMatrixView dy, ConstMatrixView b) {
  update2(da, dy, b, [](auto, auto g, auto q) HWY_ATTR { return hn::Mul(g, q); });
}

void relu_forward(MatrixView y, ConstMatrixView x) {
  // Max would hide a NaN; this comparison keeps it.
  map(y, x, [](auto d, auto v) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v); });
}

void relu_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y) {
  // y = max(x, 0)
  update2(dx, dy, y,
          [](auto d, auto g, auto v) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(v, hn::Zero(d)), g); });
}

void tanh_forward(MatrixView y, ConstMatrixView x) {
  map(y, x, [](auto d, auto v) HWY_ATTR { return hn::Tanh(d, v); });
}

void tanh_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y) {
  // y = tanh x
  update2(dx, dy, y, [](auto d, auto g, auto v) HWY_ATTR {
    return hn::Mul(g, hn::NegMulAdd(v, v, hn::Set(d, Real{1})));
  });
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, add_forward, (MatrixView y, ConstMatrixView a, ConstMatrixView b), y, a, b)
THIMBLE_DISPATCH(void, accumulate, (GradientView dx, ConstMatrixView dy), dx, dy)
THIMBLE_DISPATCH(void, scale_forward, (MatrixView y, ConstMatrixView x, Real f), y, x, f)
THIMBLE_DISPATCH(void, scale_backward, (GradientView dx, ConstMatrixView dy, Real f), dx, dy, f)
THIMBLE_DISPATCH(void, mul_forward, (MatrixView y, ConstMatrixView a, ConstMatrixView b), y, a, b)
THIMBLE_DISPATCH(void, mul_backward, (GradientView da, ConstMatrixView dy, ConstMatrixView b), da, dy, b)
THIMBLE_DISPATCH(void, relu_forward, (MatrixView y, ConstMatrixView x), y, x)
THIMBLE_DISPATCH(void, relu_backward, (GradientView dx, ConstMatrixView dy, ConstMatrixView y), dx, dy, y)
THIMBLE_DISPATCH(void, tanh_forward, (MatrixView y, ConstMatrixView x), y, x)
THIMBLE_DISPATCH(void, tanh_backward, (GradientView dx, ConstMatrixView dy, ConstMatrixView y), dx, dy, y)
