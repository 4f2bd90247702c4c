// A step of a gated recurrent unit; a and b are the gates' sums from the input and from the state h.
//   forward    r = sigmoid(a_r + b_r),  z = sigmoid(a_z + b_z),  n = tanh(a_n + r b_n),  y = n + z (h - n)
//   backward   dn = dy (1 - z) (1 - n^2),  dz = dy (h - n) z (1 - z),  dr = dn b_n r (1 - r)
//              da += (dr, dz, dn),  db += (dr, dz, dn r),  dh += dy z
//   a sequence that takes no part:  y = h,  dh += dy
//   saved: r, z, n
#include "engine/kernels/gru.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/gru.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

void gru_cell_forward(MatrixView y, MatrixView gates, ConstMatrixView gates_x, ConstMatrixView gates_h,
                      ConstMatrixView h, const GruStep& step) {
  const std::int64_t n = h.cols;
  for (std::int64_t row = 0; row < h.rows; ++row) {
    const Real *a = gates_x.row(row), *b = gates_h.row(row), *before = h.row(row);
    Real *to = y.row(row), *saved = gates.row(row);
    if (!step.takes_part(row)) {
      std::copy_n(before, n, to);
      continue;
    }
    lanes(n, [=](auto d, std::int64_t i) HWY_ATTR {
      const auto at = [=](const Real* x, std::int64_t gate) HWY_ATTR { return load(d, x + gate * n + i); };
      auto rest = hn::Zero(d);
      const auto reset = sigmoid(d, hn::Add(at(a, 0), at(b, 0)), rest);
      const auto update = sigmoid(d, hn::Add(at(a, 1), at(b, 1)), rest);
      const auto candidate = hn::Tanh(d, hn::MulAdd(reset, at(b, 2), at(a, 2)));
      store(hn::MulAdd(update, hn::Sub(at(before, 0), candidate), candidate), d, to + i);
      store(reset, d, saved + i);
      store(update, d, saved + n + i);
      store(candidate, d, saved + 2 * n + i);
    });
  }
}

// The rows of the three gradients that a sequence adds to; null: not required.
struct GruRows {
  Real *a, *b, *h;
  bool a_empty, b_empty, h_empty;
};

// Adds the gradients of a sequence that took no part: dy to the state, 0 to the gates.
void pass_on(const GruRows& to, const Real* dy, std::int64_t n) {
  if (to.a != nullptr && to.a_empty) std::fill_n(to.a, 3 * n, Real{0});
  if (to.b != nullptr && to.b_empty) std::fill_n(to.b, 3 * n, Real{0});
  if (to.h == nullptr) return;
  lanes(n, [=](auto d, std::int64_t i) HWY_ATTR { add_to(d, to.h + i, load(d, dy + i), to.h_empty); });
}

void gru_cell_backward(GradientView dgates_x, GradientView dgates_h, GradientView dh, ConstMatrixView dy,
                       ConstMatrixView gates_h, ConstMatrixView h, ConstMatrixView gates,
                       const GruStep& step) {
  const std::int64_t n = h.cols;
  const auto row_of = [](const GradientView& x, std::int64_t row) {
    return x.data == nullptr ? nullptr : x.row(row);
  };
  for (std::int64_t row = 0; row < h.rows; ++row) {
    const GruRows to{row_of(dgates_x, row),  row_of(dgates_h, row),  row_of(dh, row),
                     dgates_x.uninitialized, dgates_h.uninitialized, dh.uninitialized};
    if (!step.takes_part(row)) {
      pass_on(to, dy.row(row), n);
      continue;
    }
    lanes(n, [=, g = dy.row(row), b = gates_h.row(row), before = h.row(row), saved = gates.row(row)](
                 auto d, std::int64_t i) HWY_ATTR {
      const auto one = hn::Set(d, Real{1}), dout = load(d, g + i);
      const auto r = load(d, saved + i), z = load(d, saved + n + i);
      const auto candidate = load(d, saved + 2 * n + i), state = load(d, before + i);
      // y = n + z (h - n),  n = tanh(a_n + r b_n)
      const auto dn = hn::Mul(hn::Mul(dout, hn::Sub(one, z)), hn::NegMulAdd(candidate, candidate, one));
      const auto dz = hn::Mul(hn::Mul(dout, hn::Sub(state, candidate)), hn::Mul(z, hn::Sub(one, z)));
      const auto dr = hn::Mul(hn::Mul(dn, load(d, b + 2 * n + i)), hn::Mul(r, hn::Sub(one, r)));
      if (to.a != nullptr) {
        add_to(d, to.a + i, dr, to.a_empty);
        add_to(d, to.a + n + i, dz, to.a_empty);
        add_to(d, to.a + 2 * n + i, dn, to.a_empty);
      }
      if (to.b != nullptr) {
        add_to(d, to.b + i, dr, to.b_empty);
        add_to(d, to.b + n + i, dz, to.b_empty);
        add_to(d, to.b + 2 * n + i, hn::Mul(dn, r), to.b_empty);
      }
      if (to.h != nullptr) add_to(d, to.h + i, hn::Mul(dout, z), to.h_empty);
    });
  }
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, gru_cell_forward,
                 (MatrixView y, MatrixView gates, ConstMatrixView gates_x, ConstMatrixView gates_h,
                  ConstMatrixView h, const GruStep& step),
                 y, gates, gates_x, gates_h, h, step)
THIMBLE_DISPATCH(void, gru_cell_backward,
                 (GradientView dgates_x, GradientView dgates_h, GradientView dh, ConstMatrixView dy,
                  ConstMatrixView gates_h, ConstMatrixView h, ConstMatrixView gates, const GruStep& step),
                 dgates_x, dgates_h, dh, dy, gates_h, h, gates, step)
