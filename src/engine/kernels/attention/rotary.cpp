// Rotary positions. Every pair (a, b) of columns 2i and 2i+1, or i and i + D/2, of a head of D columns, at
// position p, is rotated by the angle t = p base^(-2i / D).
//   forward    (a, b) -> (a cos t - b sin t, b cos t + a sin t)
//   backward   the gradient (da, db) of the output -> (da cos t + db sin t, db cos t - da sin t)
//   saved: the table of (cos t, cos t) and (-sin t, sin t)
#include "engine/kernels/attention/rotary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/attention/rotary.cpp"
#include <hwy/foreach_target.h>

#include "engine/core/portable_math.h"

#include "engine/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

// Returns, for the elements of a head from column i on, the other elements of their pairs.
template <class D>
HWY_INLINE auto other_of_pair(D d, const Real* head, std::int64_t i) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return load(d, head + (i ^ 1));
  } else {
    return hn::Reverse2(d, load(d, head + i));
  }
}

// Calls rotate(d, head, i, others) for column i of every rotated head, which starts at column `head` of x,
// with the other elements of the pairs, and copy(d, c) for the other columns.
template <class Rotate, class Copy>
HWY_INLINE void each_column(const Real* x, std::int64_t cols, const RotaryColumns& which,
                            const Rotate& rotate, const Copy& copy) {
  const std::int64_t end = which.first + which.count, half = which.d_key / 2;
  lanes(which.first, copy);
  for (std::int64_t head = which.first; head < end; head += which.d_key) {
    const Real* low = x + head;
    if (which.layout == RotaryPairs::pairs) {
      lanes(which.d_key,
            [&](auto d, std::int64_t i) HWY_ATTR { rotate(d, head, i, other_of_pair(d, low, i)); });
    } else {
      lanes(half, [&](auto d, std::int64_t i) HWY_ATTR { rotate(d, head, i, load(d, low + half + i)); });
      lanes(half, [&](auto d, std::int64_t i) HWY_ATTR { rotate(d, head, half + i, load(d, low + i)); });
    }
  }
  lanes(cols - end, [&](auto d, std::int64_t c) HWY_ATTR { copy(d, end + c); });
}

void rotary_forward(MatrixView y, ConstMatrixView x, ConstMatrixView table, const RotaryColumns& columns) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    const Real *from = x.row(r), *own = table.row(r % table.rows), *other = own + columns.d_key;
    Real* to = y.row(r);
    each_column(
        from, y.cols, columns,
        [=](auto d, std::int64_t head, std::int64_t i, auto others) HWY_ATTR {
          const auto turned = hn::Mul(others, load(d, other + i));
          const auto v = load(d, from + head + i);
          store(hn::MulAdd(v, load(d, own + i), turned), d, to + head + i);
        },
        [=](auto d, std::int64_t c) HWY_ATTR { store(load(d, from + c), d, to + c); });
  }
}

void rotary_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView table,
                     const RotaryColumns& columns) {
  for (std::int64_t r = 0; r < dx.rows; ++r) {
    const Real *from = dy.row(r), *own = table.row(r % table.rows), *other = own + columns.d_key;
    Real* to = dx.row(r);
    each_column(
        from, dx.cols, columns,
        [=, uninitialized = dx.uninitialized](auto d, std::int64_t head, std::int64_t i, auto others)
            HWY_ATTR {
              const auto turned = hn::Mul(others, load(d, other + i));
              const auto g = load(d, from + head + i);
              add_to(d, to + head + i, hn::MulSub(g, load(d, own + i), turned), uninitialized);
            },
        [=, uninitialized = dx.uninitialized](auto d, std::int64_t c)
            HWY_ATTR { add_to(d, to + c, load(d, from + c), uninitialized); });
  }
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, rotary_forward,
                 (MatrixView y, ConstMatrixView x, ConstMatrixView table, const RotaryColumns& columns), y, x,
                 table, columns)
THIMBLE_DISPATCH(void, rotary_backward,
                 (GradientView dx, ConstMatrixView dy, ConstMatrixView table, const RotaryColumns& columns),
                 dx, dy, table, columns)

#if HWY_ONCE
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

void rotary_table(MatrixView table, std::int64_t first_position, const RotaryConfig& config) {
  const std::int64_t d_key = table.cols / 2;
  const bool halves = config.layout == RotaryPairs::halves;
  for (std::int64_t i = 0; i < d_key / 2; ++i) {
    const std::int64_t a = halves ? i : 2 * i, b = halves ? i + d_key / 2 : a + 1;
    const double turn = portable::pow(config.base, -static_cast<double>(2 * i) / static_cast<double>(d_key));
    for (std::int64_t t = 0; t < table.rows; ++t) {
      const double angle = static_cast<double>(first_position + t) * turn;
      Real *own = table.row(t), *other = own + d_key;
      own[a] = own[b] = static_cast<Real>(portable::cos(angle));
      other[b] = static_cast<Real>(portable::sin(angle));
      other[a] = -other[b];
    }
  }
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
#endif  // HWY_ONCE
