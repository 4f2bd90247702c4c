// Matrix products.
//   c = start + a b
// A tile of c stays in registers while one column of a and one row of b after the other are multiplied: 6 x 2
// vectors, 12 x 2 where there are 32 registers, or 4 x 2 where the product needs one of its own. From the inside out:
//   rows of a tile, which stay in the first cache for all panels of b, so that rows of c are written in order
//   panels of b, two vectors wide and contiguous, up to 256 KiB of which stay in the second cache
//   256 steps of the inner index, after which tiles continue from c
// A c of one vector of columns is computed in tiles of 8 rows, without prefetching. a is read in place, unless its
// columns are operands (op_a = transpose) and its rows are far apart. b is packed, but for narrow matrices, whose lines
// are next to each other already. While a tile is computed, what the next ones read is fetched into the first cache:
// CPUs foresee neither steps from row to row nor the start of another panel.
#include "thimble/engine/gemm.h"

#include <algorithm>
#include <cstring>

#include "engine/kernels/products/backend.h"
#include "thimble/engine/error.h"
#include "thimble/engine/tensor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/products/gemm.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "engine/kernels/products/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

constexpr std::int64_t kDepth = 256;  // steps of the inner index at a time
constexpr int kTileRows = kManyRegisters ? 12 : HWY_TARGET == HWY_WASM ? 4 : 6;
constexpr std::int64_t kPanel = 2 * hn::MaxLanes(Wide());
constexpr std::int64_t kBlock = (256 << 10) / sizeof(Real);  // of b, in elements
constexpr std::int64_t kLine = 64 / sizeof(Real);            // of a cache, in elements

std::int64_t panel_columns() { return kPanel; }

// Fetches a row of a panel into the first cache.
HWY_INLINE void fetch(const Real* row) {
  hwy::Prefetch(row);
  if constexpr (kPanel > kLine) hwy::Prefetch(row + kPanel / 2);
}

// Fetches a row at each step of the inner index, from `row` on; null: nothing.
struct Ahead {
  const Real* row = nullptr;
  std::int64_t stride = 0;

  HWY_INLINE void operator()() {
    fetch(row);
    row += stride;
  }
};

// Computes M rows of c = start + a b, of up to kPanel columns.
template <int M, class Fetch>
HWY_INLINE void multiply_panel(MatrixView c, ConstMatrixView start, Left a, const Real* b, std::int64_t ldb,
                               std::int64_t k, Fetch ahead) {
  const Wide d;
  const std::int64_t w = width(d);
  const auto from = [&](auto tag, int row, std::int64_t column)
                        HWY_ATTR { return load(tag, start.row(row) + column); };
  if (c.cols == kPanel) {
    multiply_tile<M, 2>(d, d, c.data, c.stride, from, a, b, ldb, k, ahead);
  } else if (c.cols > w) {
    multiply_tile<M, 2>(d, First<Wide>{{}, c.cols - w}, c.data, c.stride, from, a, b, ldb, k, ahead);
  } else {
    multiply_tile<M, 1>(d, First<Wide>{{}, c.cols}, c.data, c.stride, from, a, b, ldb, k, ahead);
  }
}

// Computes rows i to i + M - 1 of c = start + a b, with these rows of a. The panels of b are `panel` elements apart,
// and their rows ldb. Fetches what is about to be read for the first time: the tile of c after each one; a panel of
// b while the first rows are at the one before it; and once per call the next rows of a, which `next` steps through.
template <int M>
void multiply_rows(MatrixView c, ConstMatrixView start, std::int64_t i, Left a, const Real* b,
                   std::int64_t panel, std::int64_t ldb, std::int64_t k, Ahead next) {
  const std::int64_t next_rows = std::min<std::int64_t>(M, c.rows - i - M);
  for (std::int64_t j = 0; j < c.cols; j += kPanel, b += panel) {
    const std::int64_t columns = std::min(kPanel, c.cols - j);
    const bool is_first = i == 0, is_last = j + kPanel >= c.cols;
    Ahead ahead;
    if (is_first && !is_last) {
      ahead = {b + panel, ldb};
    } else if (is_first || j == 0) {
      ahead = next;
    }
    const Real* const next_tile = is_last ? c.row(i + M) : c.row(i) + j + kPanel;
    for (std::int64_t r = 0; r < (is_last ? next_rows : M); ++r) fetch(next_tile + r * c.stride);
    const MatrixView tile = c.row_block(i, M).column_block(j, columns);
    const ConstMatrixView from{start.row(i) + j, M, columns, start.stride};
    if (ahead.row == nullptr) {
      multiply_panel<M>(tile, from, a, b, ldb, k, [] {});
    } else {
      multiply_panel<M>(tile, from, a, b, ldb, k, ahead);
    }
  }
}

// Copies M columns of a (k, columns) to rows of kTileRows.
template <int M>
HWY_INLINE void pack_columns(Real* to, const Real* a, std::int64_t stride, std::int64_t k) {
  for (std::int64_t p = 0; p < k; ++p, to += kTileRows, a += stride) std::memcpy(to, a, M * sizeof(Real));
}

// Computes c = start + op(a) b for k <= kDepth steps of the inner index. `packs`: copies the columns of a.
void compute_block(MatrixView c, ConstMatrixView start, ConstMatrixView a, Op op_a, bool packs, const Real* b,
                   std::int64_t panel, std::int64_t ldb) {
  const bool transposed = op_a == Op::transpose;
  const std::int64_t k = transposed ? a.rows : a.cols;
  if (c.cols <= width(Wide()) && !packs) {
    const Left left{a.data, transposed ? 1 : a.stride, transposed ? a.stride : 1};
    const auto from = [&](auto tag, std::int64_t row, std::int64_t column)
                          HWY_ATTR { return load(tag, start.row(row) + column); };
    return multiply_columns(c.cols, c.data, c.stride, from, false, left, b, ldb, c.rows, k);
  }
  HWY_ALIGN Real tile[kTileRows * kDepth];
  const std::int64_t step = std::max<std::int64_t>(1, kBlock / (k * kPanel)) * kPanel;
  for (std::int64_t j = 0; j < c.cols; j += step) {
    const std::int64_t columns = std::min(step, c.cols - j);
    const Real* const right = b + j / kPanel * panel;
    const auto rows = [&]<int M>(std::int64_t i) HWY_ATTR {
      Left left{a.data + i * a.stride, a.stride, 1};
      Ahead next;
      if (transposed) {
        left = {a.data + i, 1, a.stride};
        next = {a.data + std::min(i + M + kTileRows, c.rows) - 1, a.stride};  // the end of the next columns
      } else if (a.stride == k) {
        next = {a.data + std::min(i + M, c.rows - 1) * a.stride, kLine};  // the next rows, one after another
      }
      if (packs) {
        pack_columns<M>(tile, a.data + i, a.stride, k);
        left = {tile, 1, kTileRows};
      }
      multiply_rows<M>(c.column_block(j, columns), start.column_block(j, columns), i, left, right, panel, ldb,
                       k, next);
    };
    std::int64_t i = 0;
    for (; i + kTileRows <= c.rows; i += kTileRows) rows.template operator()<kTileRows>(i);
    for (; i + 4 <= c.rows; i += 4) rows.template operator()<4>(i);
    for (; i < c.rows; ++i) rows.template operator()<1>(i);
  }
}

// Leaves what a panel has beyond the last column as it is: products do not read it.
void pack_panels(Real* to, ConstMatrixView b, Op op_b) {
  const bool transposed = op_b == Op::transpose;
  const std::int64_t rows = transposed ? b.cols : b.rows, cols = transposed ? b.rows : b.cols;
  if (!transposed) {
    constexpr std::int64_t kRows = 4;  // at a time, while the next ones are fetched
    for (std::int64_t first = 0; first < rows; first += kRows) {
      for (std::int64_t j = 0; j < cols; j += kPanel) {
        for (std::int64_t p = first; p < std::min(rows, first + kRows); ++p) {
          Real* const row = to + j * rows + p * kPanel;
          const std::int64_t columns = std::min(kPanel, cols - j);
          fetch(b.row(std::min(p + kRows, rows - 1)) + j);
          if (columns < kPanel) std::copy_n(b.row(p) + j, columns, row);
          if (columns == kPanel) std::memcpy(row, b.row(p) + j, kPanel * sizeof(Real));
        }
      }
    }
    return;
  }
  for (std::int64_t j = 0; j < cols; j += kPanel, to += rows * kPanel)
    transpose(to, kPanel, b.row(j), b.stride, std::min(kPanel, cols - j), rows);
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

HWY_EXPORT(panel_columns);
HWY_EXPORT(compute_block);
HWY_EXPORT(pack_panels);

namespace {

constexpr std::int64_t kDepth = HWY_STATIC_DISPATCH(kDepth);
constexpr std::int64_t kBlockColumns = 256;  // of b at a time
constexpr std::int64_t kNear = 1024;   // the most bytes from row to row of an operand that is read in place
constexpr std::int64_t kFewRows = 64;  // of a; more of them use a packed b, which pays from kNear / 2 on

std::int64_t panel_columns() { return HWY_DYNAMIC_DISPATCH(panel_columns)(); }

std::int64_t panels(std::int64_t cols) { return (cols + panel_columns() - 1) / panel_columns(); }

std::int64_t bytes(std::int64_t elements) { return elements * static_cast<std::int64_t>(sizeof(Real)); }

alignas(kAlignment) constexpr Real kZeros[kBlockColumns] = {};

// A block of a right operand: panels `panel` elements apart, with rows `row` apart.
struct RightBlock {
  const Real* data;
  std::int64_t panel, row;
};

// Computes c = start + op(a) b, with 0 for a start without data; right(j, columns, p, depth) returns a block of b.
template <class Right>
void compute(MatrixView c, ConstMatrixView start, ConstMatrixView a, Op op_a, const Right& right) {
  const bool transposed = op_a == Op::transpose;
  const bool packs = transposed && bytes(a.stride) > kNear;
  const std::int64_t k = transposed ? a.rows : a.cols;
  for (std::int64_t j = 0; j < c.cols; j += kBlockColumns) {
    const std::int64_t columns = std::min(kBlockColumns, c.cols - j);
    const MatrixView to = c.column_block(j, columns);
    ConstMatrixView from{kZeros, c.rows, columns, 0};
    if (start.data != nullptr) from = start.column_block(j, columns);
    if (k == 0) {
      for (std::int64_t r = 0; r < c.rows; ++r) std::copy_n(from.row(r), columns, to.row(r));
    }
    for (std::int64_t p = 0; p < k; p += kDepth) {
      const std::int64_t depth = std::min(kDepth, k - p);
      const RightBlock b = right(j, columns, p, depth);
      HWY_DYNAMIC_DISPATCH(compute_block)
      (to, from, transposed ? a.row_block(p, depth) : a.column_block(p, depth), op_a, packs, b.data, b.panel,
       b.row);
      from = to;
    }
  }
}

// Computes c = start + op(a) op(b), packing b block by block on the stack.
void compute_packing(MatrixView c, ConstMatrixView start, ConstMatrixView a, Op op_a, ConstMatrixView b,
                     Op op_b) {
  alignas(kAlignment) Real packed[kBlockColumns * kDepth];
  const std::int64_t w = panel_columns();
  compute(c, start, a, op_a,
          [&](std::int64_t j, std::int64_t columns, std::int64_t p, std::int64_t depth) -> RightBlock {
            const ConstMatrixView block = op_b == Op::transpose
                                              ? b.row_block(j, columns).column_block(p, depth)
                                              : b.row_block(p, depth).column_block(j, columns);
            HWY_DYNAMIC_DISPATCH(pack_panels)(packed, block, op_b);
            return {packed, w * depth, w};
          });
}

void check_sizes(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b) {
  const bool ta = op_a == Op::transpose, tb = op_b == Op::transpose;
  const std::int64_t m = ta ? a.cols : a.rows, k = ta ? a.rows : a.cols;
  const std::int64_t kb = tb ? b.cols : b.rows, n = tb ? b.rows : b.cols;
  require<ShapeError>(m == c.rows && n == c.cols && k == kb,
                      "gemm: (M, K) x (K, N) -> (M, N): got ({}, {}) x ({}, {}) -> ({}, {})", m, k, kb, n,
                      c.rows, c.cols);
}

}  // namespace

PackedView PackedView::row_block(std::int64_t first, std::int64_t count) const {
  if (data == nullptr) return {};
  return {data + first * panel_columns(), count, cols, panel};
}

PackedView PackedView::column_block(std::int64_t first, std::int64_t count) const {
  const std::int64_t w = panel_columns();
  if (data == nullptr || first % w != 0) return {};
  return {data + first / w * panel, rows, count, panel};
}

std::int64_t packed_size(std::int64_t rows, std::int64_t cols) {
  return uses_openblas() ? 0 : panels(cols) * panel_columns() * rows;
}

PackedView pack(Real* to, ConstMatrixView b, Op op_b) {
  HWY_DYNAMIC_DISPATCH(pack_panels)(to, b, op_b);
  const std::int64_t rows = op_b == Op::transpose ? b.cols : b.rows;
  return {to, rows, op_b == Op::transpose ? b.rows : b.cols, rows * panel_columns()};
}

void gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b) {
  gemm_add({c, true}, a, op_a, b, op_b);
}

void gemm_add(GradientView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b) {
  if (c.data == nullptr) return;
  check_sizes(c, a, op_a, b, op_b);
  if (c.rows == 0 || c.cols == 0) return;
  if (uses_openblas()) return blas_gemm(c, a, op_a, b, op_b, 1, c.uninitialized ? 0 : 1);
  const std::int64_t w = panel_columns();
  const ConstMatrixView start = c.uninitialized ? ConstMatrixView{} : c;
  const std::int64_t near = c.rows > kFewRows ? kNear / 2 : kNear;
  if (op_b != Op::none || bytes(b.stride) > near) return compute_packing(c, start, a, op_a, b, op_b);
  compute(c, start, a, op_a, [&](std::int64_t j, std::int64_t, std::int64_t p, std::int64_t) -> RightBlock {
    return {b.row(p) + j, w, b.stride};
  });
}

void gemm_packed(MatrixView c, ConstMatrixView start, ConstMatrixView a, PackedView b) {
  if (c.rows == 0) return;
  if (start.rows == 1) start.stride = 0;
  const std::int64_t w = panel_columns();
  compute(c, start, a, Op::none,
          [&](std::int64_t j, std::int64_t, std::int64_t p, std::int64_t) -> RightBlock {
            return {b.data + j / w * b.panel + p * w, b.panel, w};
          });
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
#endif  // HWY_ONCE
