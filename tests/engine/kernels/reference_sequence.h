// The kernels of sequences as plain loops; see reference.h.
#pragma once

#include "engine/kernels/gru.h"
#include "engine/kernels/reference.h"
#include "engine/kernels/unfold.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace reference {

inline std::int64_t length_of(const kernels::UnfoldSizes& s, std::int64_t sequence) {
  return s.lengths.empty() ? s.time : s.lengths[static_cast<std::size_t>(sequence)];
}

inline void unfold_forward(auto y, auto x, const kernels::UnfoldSizes& s) {
  each(y, [&](auto r, auto i) {
    const std::int64_t b = r / s.time, from = r % s.time + i % s.window - s.before;
    at(y, r, i) = from < 0 || from >= length_of(s, b) ? 0 : at(x, b * s.time + from, i / s.window);
  });
}
inline void unfold_backward(auto dx, auto dy, const kernels::UnfoldSizes& s) {
  each(dx, [&](auto r, auto c) { add(dx, r, c, 0); });
  each(dy, [&](auto r, auto i) {
    const std::int64_t b = r / s.time, to = r % s.time + i % s.window - s.before;
    if (to >= 0 && to < length_of(s, b)) at(dx, b * s.time + to, i / s.window) += at(dy, r, i);
  });
}

// Returns whether a sequence has ended, so that it keeps its state.
inline bool ended(const kernels::GruStep& step, std::int64_t r) {
  return !step.lengths.empty() && step.lengths[static_cast<std::size_t>(r)] <= step.t;
}

inline void gru_cell_forward(auto y, auto gates, auto a, auto b, auto h, const kernels::GruStep& step) {
  const std::int64_t n = h.cols;
  const auto logistic = [](auto x) { return 1 / (1 + std::exp(-x)); };
  each(h, [&](auto r, auto c) {
    const auto reset = logistic(at(a, r, c) + at(b, r, c));
    const auto update = logistic(at(a, r, n + c) + at(b, r, n + c));
    const auto candidate = std::tanh(at(a, r, 2 * n + c) + reset * at(b, r, 2 * n + c));
    at(y, r, c) = ended(step, r) ? at(h, r, c) : (1 - update) * candidate + update * at(h, r, c);
    at(gates, r, c) = reset, at(gates, r, n + c) = update, at(gates, r, 2 * n + c) = candidate;
  });
}
inline void gru_cell_backward(auto da, auto db, auto dh, auto dy, auto b, auto h, auto gates,
                              const kernels::GruStep& step) {
  const std::int64_t n = h.cols;
  each(h, [&](auto r, auto c) {
    const auto reset = at(gates, r, c), update = at(gates, r, n + c), candidate = at(gates, r, 2 * n + c);
    const auto g = ended(step, r) ? 0 : at(dy, r, c);
    const auto dn = g * (1 - update) * (1 - candidate * candidate);
    const auto dz = g * (at(h, r, c) - candidate) * update * (1 - update);
    const auto dr = dn * at(b, r, 2 * n + c) * reset * (1 - reset);
    add(da, r, c, dr), add(da, r, n + c, dz), add(da, r, 2 * n + c, dn);
    add(db, r, c, dr), add(db, r, n + c, dz), add(db, r, 2 * n + c, dn * reset);
    add(dh, r, c, ended(step, r) ? at(dy, r, c) : g * update);
  });
}

}  // namespace reference
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
