// Products of small matrices in cache, for attention: C = alpha A B or C += alpha A B. BLAS would take longer
// to pack them than to multiply. Toggled guard: see simd-inl.h.
#if defined(THIMBLE_KERNELS_SMALL_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_KERNELS_SMALL_GEMM_INL_H_
#undef THIMBLE_KERNELS_SMALL_GEMM_INL_H_
#else
#define THIMBLE_KERNELS_SMALL_GEMM_INL_H_
#endif

#include <algorithm>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

enum class Store { overwrite, add };

// The left operand, which is read one element at a time and may be transposed: element (i, p) is at
// data[i * row + p * col].
struct Left {
  const Real* data;
  std::int64_t row, col;
};

// Computes a tile of M rows by N vectors of C, kept in registers over the whole of k.
template <int M, int N, Store kStore, class D>
HWY_INLINE void small_gemm_tile(D d, Real* c, std::int64_t ldc, Left a, const Real* b, std::int64_t ldb,
                                std::int64_t k, Real alpha) {
  const std::int64_t w = width(d);
  decltype(hn::Zero(d)) sum[M][N];
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) sum[i][j] = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < k; ++p) {
    for (int i = 0; i < M; ++i) {
      const auto left = hn::Set(d, a.data[i * a.row + p * a.col]);
      for (int j = 0; j < N; ++j) sum[i][j] = hn::MulAdd(left, hn::LoadU(d, b + p * ldb + j * w), sum[i][j]);
    }
  }
  const auto factor = hn::Set(d, alpha);
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      Real* to = c + i * ldc + j * w;
      if constexpr (kStore == Store::add) {
        hn::StoreU(hn::MulAdd(sum[i][j], factor, hn::LoadU(d, to)), d, to);
      } else {
        hn::StoreU(hn::Mul(sum[i][j], factor), d, to);
      }
    }
  }
}

// Computes N vectors of columns of C, in tiles of M rows.
template <int M, int N, Store kStore, class D>
HWY_INLINE void small_gemm_panel(D d, Real* c, std::int64_t ldc, Left a, const Real* b, std::int64_t ldb,
                                 std::int64_t m, std::int64_t k, Real alpha) {
  std::int64_t i = 0;
  for (; i + M <= m; i += M) {
    small_gemm_tile<M, N, kStore>(d, c + i * ldc, ldc, {a.data + i * a.row, a.row, a.col}, b, ldb, k, alpha);
  }
  for (; i < m; ++i) {
    small_gemm_tile<1, N, kStore>(d, c + i * ldc, ldc, {a.data + i * a.row, a.row, a.col}, b, ldb, k, alpha);
  }
}

// Computes C = alpha A B or C += alpha A B, with A (m, k), B (k, n) and C (m, n), the latter two row-major.
template <Store kStore>
HWY_INLINE void small_gemm(Real* c, std::int64_t ldc, Left a, const Real* b, std::int64_t ldb, std::int64_t m,
                           std::int64_t n, std::int64_t k, Real alpha) {
  const Wide wide;
  const Narrow narrow;
  constexpr bool kManyRegisters =
      HWY_TARGET <= HWY_AVX3;  // 32 of them; enough sums to hide the latency of MulAdd
  std::int64_t j = 0;
  const std::int64_t w = width(wide);
  if constexpr (kManyRegisters) {
    for (; j + 4 * w <= n; j += 4 * w)
      small_gemm_panel<4, 4, kStore>(wide, c + j, ldc, a, b + j, ldb, m, k, alpha);
  }
  for (; j + 2 * w <= n; j += 2 * w) {
    small_gemm_panel<kManyRegisters ? 8 : 4, 2, kStore>(wide, c + j, ldc, a, b + j, ldb, m, k, alpha);
  }
  for (; j + w <= n; j += w) small_gemm_panel<8, 1, kStore>(wide, c + j, ldc, a, b + j, ldb, m, k, alpha);
  for (; j + width(narrow) <= n; j += width(narrow)) {
    small_gemm_panel<8, 1, kStore>(narrow, c + j, ldc, a, b + j, ldb, m, k, alpha);
  }
  for (; j < n; ++j) small_gemm_panel<8, 1, kStore>(Single(), c + j, ldc, a, b + j, ldb, m, k, alpha);
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

#endif  // THIMBLE_KERNELS_SMALL_GEMM_INL_H_
