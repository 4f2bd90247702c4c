// The kernels that go from one position to the next, as plain loops; see naive.h.
#pragma once

#include "naive.h"
#include "thimble/kernels/gru.h"
#include "thimble/kernels/windows.h"

namespace thimble::inline THIMBLE_PRECISION::naive {

inline void windows_forward(MatrixView y, ConstMatrixView x, const kernels::WindowSizes& s) {
  each(y, [&](auto r, auto i) {
    const std::int64_t from = r % s.time + i % s.window - s.before;
    at(y, r, i) = from < 0 || from >= s.time ? 0 : at(x, r / s.time * s.time + from, i / s.window);
  });
}
inline void windows_backward(GradientView dx, ConstMatrixView dy, const kernels::WindowSizes& s) {
  each(dx, [&](auto r, auto c) { add(dx, r, c, 0); });
  each(dy, [&](auto r, auto i) {
    const std::int64_t to = r % s.time + i % s.window - s.before;
    if (to >= 0 && to < s.time) at<Real>(dx, r / s.time * s.time + to, i / s.window) += at(dy, r, i);
  });
}

// Without padding.
inline void gru_cell_forward(MatrixView y, MatrixView gates, ConstMatrixView a, ConstMatrixView b,
                             ConstMatrixView h, const kernels::GruStep&) {
  const std::int64_t n = h.cols;
  const auto logistic = [](Real x) { return 1 / (1 + std::exp(-x)); };
  each(h, [&](auto r, auto c) {
    const Real reset = logistic(at(a, r, c) + at(b, r, c));
    const Real update = logistic(at(a, r, n + c) + at(b, r, n + c));
    const Real candidate = std::tanh(at(a, r, 2 * n + c) + reset * at(b, r, 2 * n + c));
    at(y, r, c) = (1 - update) * candidate + update * at(h, r, c);
    at(gates, r, c) = reset, at(gates, r, n + c) = update, at(gates, r, 2 * n + c) = candidate;
  });
}
inline void gru_cell_backward(GradientView da, GradientView db, GradientView dh, ConstMatrixView dy,
                              ConstMatrixView b, ConstMatrixView h, ConstMatrixView gates,
                              const kernels::GruStep&) {
  const std::int64_t n = h.cols;
  each(h, [&](auto r, auto c) {
    const Real reset = at(gates, r, c), update = at(gates, r, n + c), candidate = at(gates, r, 2 * n + c);
    const Real dn = at(dy, r, c) * (1 - update) * (1 - candidate * candidate);
    const Real dz = at(dy, r, c) * (at(h, r, c) - candidate) * update * (1 - update);
    const Real dr = dn * at(b, r, 2 * n + c) * reset * (1 - reset);
    add(da, r, c, dr), add(da, r, n + c, dz), add(da, r, 2 * n + c, dn);
    add(db, r, c, dr), add(db, r, n + c, dz), add(db, r, 2 * n + c, dn * reset);
    add(dh, r, c, at(dy, r, c) * update);
  });
}

}  // namespace thimble::inline THIMBLE_PRECISION::naive
