// Element-wise kernels: each forward next to the backward that undoes it.
//   add    y = a + b                 da += dy, db += dy
//   scale  y = f x                   dx += f dy
//   product  y = a b                 da += dy b, db += dy a    saved: a, b
//   ReLU   y = max(x, 0)             dx += dy [y > 0]          saved: y
//   tanh   y = tanh x                dx += dy (1 - y^2)        saved: y
#include "thimble/kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/math/math-inl.h>
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble::inline THIMBLE_PRECISION::kernels::HWY_NAMESPACE {

// y[r][i] = f(d, x[r][i]), and the same with two inputs.
template <class F>
HWY_INLINE void map(MatrixView y, ConstMatrixView x, const F& f) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    lanes(y.cols, [&, to = y.row(r), from = x.row(r)](auto d, std::int64_t i)
                      HWY_ATTR { hn::StoreU(f(d, hn::LoadU(d, from + i)), d, to + i); });
  }
}

template <class F>
HWY_INLINE void map2(MatrixView y, ConstMatrixView a, ConstMatrixView b, const F& f) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    lanes(y.cols, [&, to = y.row(r), p = a.row(r), q = b.row(r)](auto d, std::int64_t i)
                      HWY_ATTR { hn::StoreU(f(d, hn::LoadU(d, p + i), hn::LoadU(d, q + i)), d, to + i); });
  }
}

// dx[r][i] += f(d, dy[r][i]), and the same with what was saved.
template <class F>
HWY_INLINE void update(GradientView dx, ConstMatrixView dy, const F& f) {
  for (std::int64_t r = 0; r < dx.rows; ++r) {
    lanes(dx.cols, [&, to = dx.row(r), g = dy.row(r)](auto d, std::int64_t i)
                       HWY_ATTR { add_to(d, to + i, f(d, hn::LoadU(d, g + i)), dx.uninitialized); });
  }
}

template <class F>
HWY_INLINE void update2(GradientView dx, ConstMatrixView dy, ConstMatrixView saved, const F& f) {
  for (std::int64_t r = 0; r < dx.rows; ++r) {
    lanes(dx.cols, [&, to = dx.row(r), g = dy.row(r), s = saved.row(r)](auto d, std::int64_t i) HWY_ATTR {
      add_to(d, to + i, f(d, hn::LoadU(d, g + i), hn::LoadU(d, s + i)), dx.uninitialized);
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

void multiply_forward(MatrixView y, ConstMatrixView a, ConstMatrixView b) {
  map2(y, a, b, [](auto, auto p, auto q) HWY_ATTR { return hn::Mul(p, q); });
}

void multiply_backward(GradientView da, ConstMatrixView dy, ConstMatrixView b) {
  update2(da, dy, b, [](auto, auto g, auto q) HWY_ATTR { return hn::Mul(g, q); });
}

void relu_forward(MatrixView y, ConstMatrixView x) {
  // Max would hide a NaN; this comparison keeps it.
  map(y, x, [](auto d, auto v) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v); });
}

void relu_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y) {
  update2(dx, dy, y,
          [](auto d, auto g, auto v) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(v, hn::Zero(d)), g); });
}

void tanh_forward(MatrixView y, ConstMatrixView x) {
  map(y, x, [](auto d, auto v) HWY_ATTR { return hn::Tanh(d, v); });
}

void tanh_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y) {
  update2(dx, dy, y, [](auto d, auto g, auto v) HWY_ATTR {
    return hn::Mul(g, hn::NegMulAdd(v, v, hn::Set(d, Real{1})));
  });
}

}  // namespace thimble::inline THIMBLE_PRECISION::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble::inline THIMBLE_PRECISION::kernels {

HWY_EXPORT(add_forward);
HWY_EXPORT(accumulate);
HWY_EXPORT(scale_forward);
HWY_EXPORT(scale_backward);
HWY_EXPORT(multiply_forward);
HWY_EXPORT(multiply_backward);
HWY_EXPORT(relu_forward);
HWY_EXPORT(relu_backward);
HWY_EXPORT(tanh_forward);
HWY_EXPORT(tanh_backward);

void add_forward(MatrixView y, ConstMatrixView a, ConstMatrixView b) {
  HWY_DYNAMIC_DISPATCH(add_forward)(y, a, b);
}
void accumulate(GradientView dx, ConstMatrixView dy) { HWY_DYNAMIC_DISPATCH(accumulate)(dx, dy); }
void scale_forward(MatrixView y, ConstMatrixView x, Real f) { HWY_DYNAMIC_DISPATCH(scale_forward)(y, x, f); }
void scale_backward(GradientView dx, ConstMatrixView dy, Real f) {
  HWY_DYNAMIC_DISPATCH(scale_backward)(dx, dy, f);
}
void multiply_forward(MatrixView y, ConstMatrixView a, ConstMatrixView b) {
  HWY_DYNAMIC_DISPATCH(multiply_forward)(y, a, b);
}
void multiply_backward(GradientView da, ConstMatrixView dy, ConstMatrixView b) {
  HWY_DYNAMIC_DISPATCH(multiply_backward)(da, dy, b);
}
void relu_forward(MatrixView y, ConstMatrixView x) { HWY_DYNAMIC_DISPATCH(relu_forward)(y, x); }
void relu_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y) {
  HWY_DYNAMIC_DISPATCH(relu_backward)(dx, dy, y);
}
void tanh_forward(MatrixView y, ConstMatrixView x) { HWY_DYNAMIC_DISPATCH(tanh_forward)(y, x); }
void tanh_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y) {
  HWY_DYNAMIC_DISPATCH(tanh_backward)(dx, dy, y);
}

}  // namespace thimble::inline THIMBLE_PRECISION::kernels
#endif  // HWY_ONCE
