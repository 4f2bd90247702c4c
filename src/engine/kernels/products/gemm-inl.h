// The innermost loops of matrix products, and products of small matrices in cache for attention. Toggled guard:
// see simd-inl.h.
#if defined(THIMBLE_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_KERNELS_GEMM_INL_H_
#undef THIMBLE_KERNELS_GEMM_INL_H_
#else
#define THIMBLE_KERNELS_GEMM_INL_H_
#endif

#include <algorithm>

#include "engine/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

// Whether there are 32 vector registers, else 16.
constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3 || kNeon;

// The left operand, which is read one element at a time: element (i, p) is at data[i * row + p * col].
struct Left {
  const Real* data;
  std::int64_t row, col;
};

// Computes a tile of M rows by N vectors, c = start + a b, kept in registers over the whole of k: each element
// is one chain of multiply-adds. Vector j is at column j * w, the last one at column `last`. start(i, column)
// returns the vector that the chains start from; fetch() is called at each step of the inner index.
template <int M, int N, class D, class Start, class Fetch>
HWY_INLINE void multiply_tile(D d, Real* c, std::int64_t ldc, const Start& start, Left a, const Real* b,
                              std::int64_t ldb, std::int64_t k, std::int64_t last, Fetch fetch) {
  const auto column = [=](int j) { return j + 1 < N ? j * width(D()) : last; };
  decltype(hn::Zero(d)) sum[M][N];
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) sum[i][j] = start(i, column(j));
  }
  for (; k > 0; --k, a.data += a.col, b += ldb) {
    fetch();
    decltype(hn::Zero(d)) right[N];
    for (int j = 0; j < N; ++j) right[j] = hn::LoadU(d, b + column(j));
    for (int i = 0; i < M; ++i) {
      const auto left = hn::Set(d, a.data[i * a.row]);
      for (int j = 0; j < N; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  }
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) hn::StoreU(sum[i][j], d, c + i * ldc + column(j));
  }
}

enum class Store { overwrite, add };

// Computes N vectors of columns of C, in tiles of M rows. The last tile that overwrites may overlap the one
// before it.
template <Store kStore, int M, int N, class D>
HWY_INLINE void multiply_columns(D d, Real* c, std::int64_t ldc, Left a, const Real* b, std::int64_t ldb,
                                 std::int64_t m, std::int64_t k, std::int64_t last) {
  const auto tile = [&]<int kRows>(std::int64_t i) HWY_ATTR {
    Real* const to = c + i * ldc;
    const auto start = [&](int row, std::int64_t column) HWY_ATTR {
      if constexpr (kStore == Store::add) return hn::LoadU(d, to + row * ldc + column);
      return hn::Zero(d);
    };
    multiply_tile<kRows, N>(d, to, ldc, start, {a.data + i * a.row, a.row, a.col}, b, ldb, k, last, [] {});
  };
  std::int64_t i = 0;
  for (; i + M <= m; i += M) tile.template operator()<M>(i);
  if (kStore == Store::overwrite && i < m && m > M) return tile.template operator()<M>(m - M);
  for (; i < m; ++i) tile.template operator()<1>(i);
}

// Computes C = A B or C += A B of small matrices in cache, with A (m, k), B (k, n) and C (m, n), the latter two
// row-major. Columns beyond the last whole vector of a product that overwrites are computed by a vector that
// overlaps the one before it, all others by narrower vectors.
template <Store kStore, class D = Wide>
HWY_INLINE void multiply_small(Real* c, std::int64_t ldc, Left a, const Real* b, std::int64_t ldb,
                               std::int64_t m, std::int64_t n, std::int64_t k) {
  const D d;
  const std::int64_t w = width(d);
  constexpr bool kOverlaps = kStore == Store::overwrite;
  std::int64_t j = 0;
  for (; j + 2 * w <= n || (kOverlaps && n >= w && n - j > w); j += 2 * w) {
    multiply_columns<kStore, kManyRegisters ? 8 : 4, 2>(d, c + j, ldc, a, b + j, ldb, m, k,
                                                        std::min(w, n - j - w));
  }
  if (j + w <= n || (kOverlaps && n >= w && j < n)) {
    const std::int64_t first = std::min(j, n - w);
    multiply_columns<kStore, 8, 1>(d, c + first, ldc, a, b + first, ldb, m, k, 0);
    j += w;
  }
  if constexpr (hn::MaxLanes(D()) > 1) {
    if (j < n) multiply_small<kStore, hn::Half<D>>(c + j, ldc, a, b + j, ldb, m, n - j, k);
  }
}

// Writes the transpose of from (rows, cols) to `to` (cols, rows), in tiles of 4 x 4 where there are vectors
// of four.
HWY_INLINE void transpose(Real* to, const Real* from, std::int64_t stride, std::int64_t rows,
                          std::int64_t cols) {
#if HWY_TARGET != HWY_SCALAR && !defined(THIMBLE_DOUBLE)
  const std::int64_t tiled_rows = rows / 4 * 4, tiled_cols = cols / 4 * 4;
  constexpr std::int64_t kColumns =
      32;  // at a time, so that the rows of `to` stay in cache until they are full
  const hn::FixedTag<Real, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  for (std::int64_t first = 0; first < tiled_cols; first += kColumns)
    for (std::int64_t r = 0; r < tiled_rows; r += 4) {
      for (std::int64_t c = first; c < std::min(tiled_cols, first + kColumns); c += 4) {
        const Real* tile = from + r * stride + c;
        const auto a = hn::LoadU(d, tile), b = hn::LoadU(d, tile + stride);
        const auto e = hn::LoadU(d, tile + 2 * stride), f = hn::LoadU(d, tile + 3 * stride);
        const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
        const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
        const auto ef_low = hn::BitCast(pairs, hn::InterleaveLower(d, e, f));
        const auto ef_high = hn::BitCast(pairs, hn::InterleaveUpper(d, e, f));
        Real* out = to + c * rows + r;
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ef_low)), d, out);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ef_low)), d, out + rows);
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ef_high)), d, out + 2 * rows);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ef_high)), d, out + 3 * rows);
      }
    }
#else
  const std::int64_t tiled_rows = 0, tiled_cols = 0;
#endif
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = r < tiled_rows ? tiled_cols : 0; c < cols; ++c)
      to[c * rows + r] = from[r * stride + c];
  }
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // THIMBLE_KERNELS_GEMM_INL_H_
