// Soft capping (Gemma Team 2024, "Gemma 2", section 2), which keeps y within -c .. c.
//   forward    y = c tanh(x / c)
//   backward   dx += dy (1 - (y / c)^2)
//   saved: y
#include "thimble/kernels/softcap.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softcap.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/math/math-inl.h>
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble::inline THIMBLE_PRECISION::kernels::HWY_NAMESPACE {

void softcap_forward(MatrixView y, ConstMatrixView x, Real cap) {
  for (std::int64_t r = 0; r < y.rows; ++r)
    lanes(y.cols, [=, to = y.row(r), from = x.row(r)](auto d, std::int64_t i) HWY_ATTR {
      const auto c = hn::Set(d, cap);
      hn::StoreU(hn::Mul(c, hn::Tanh(d, hn::Div(hn::LoadU(d, from + i), c))), d, to + i);
    });
}

void softcap_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y, Real cap) {
  for (std::int64_t r = 0; r < dx.rows; ++r)
    lanes(dx.cols, [=, to = dx.row(r), g = dy.row(r), from = y.row(r), uninitialized = dx.uninitialized](
                       auto d, std::int64_t i) HWY_ATTR {
      const auto t = hn::Div(hn::LoadU(d, from + i), hn::Set(d, cap));
      add_to(d, to + i, hn::Mul(hn::LoadU(d, g + i), hn::NegMulAdd(t, t, hn::Set(d, Real{1}))),
             uninitialized);
    });
}

}  // namespace thimble::inline THIMBLE_PRECISION::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, softcap_forward, (MatrixView y, ConstMatrixView x, Real cap), y, x, cap)
THIMBLE_DISPATCH(void, softcap_backward, (GradientView dx, ConstMatrixView dy, ConstMatrixView y, Real cap),
                 dx, dy, y, cap)
