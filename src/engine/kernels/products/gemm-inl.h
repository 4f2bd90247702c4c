// The innermost loops of matrix products, and products of small matrices in cache for attention. Toggled guard:
// see simd-inl.h.
#if defined(THIMBLE_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_KERNELS_GEMM_INL_H_
#undef THIMBLE_KERNELS_GEMM_INL_H_
#else
#define THIMBLE_KERNELS_GEMM_INL_H_
#endif

#include <algorithm>
#include <type_traits>

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
// is one chain of multiply-adds. `last` is the tag of the last vector, d that of the others. start(tag, i, column)
// returns the vector that the chains start from; fetch() is called at each step of the inner index.
template <int M, int N, class D, class Last, class Start, class Fetch>
HWY_INLINE void multiply_tile(D d, Last last, Real* c, std::int64_t ldc, const Start& start, Left a,
                              const Real* b, std::int64_t ldb, std::int64_t k, Fetch fetch) {
  const std::int64_t w = width(d), end = (N - 1) * w;
  // First lanes go through memory: what loads and stores them is too long for the compiler to unroll, and only
  // unrolled loops keep the sums in registers.
  constexpr bool kPart = !std::is_same_v<D, Last>;
  HWY_ALIGN Real part[kPart ? M * hn::MaxLanes(D()) : 1];
  if constexpr (kPart) {
    for (int i = 0; i < M; ++i) hn::Store(start(last, i, end), d, part + i * w);
  }
  hn::Vec<D> sum[M][N];
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j + 1 < N; ++j) sum[i][j] = start(d, i, j * w);
    if constexpr (kPart) {
      sum[i][N - 1] = hn::Load(d, part + i * w);
    } else {
      sum[i][N - 1] = start(d, i, end);
    }
  }
  for (; k > 0; --k, a.data += a.col, b += ldb) {
    fetch();
    hn::Vec<D> right[N];
    for (int j = 0; j + 1 < N; ++j) right[j] = hn::LoadU(d, b + j * w);
    right[N - 1] = load(last, b + end);
    for (int i = 0; i < M; ++i) {
      const auto left = hn::Set(d, a.data[i * a.row]);
      for (int j = 0; j < N; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  }
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j + 1 < N; ++j) hn::StoreU(sum[i][j], d, c + i * ldc + j * w);
    if constexpr (kPart) {
      hn::Store(sum[i][N - 1], d, part + i * w);
    } else {
      hn::StoreU(sum[i][N - 1], d, c + i * ldc + end);
    }
  }
  if constexpr (kPart) {
    for (int i = 0; i < M; ++i) store(hn::Load(d, part + i * w), last, c + i * ldc + end);
  }
}

// Computes N vectors of columns of c = start + a b in tiles of up to 8 rows. `last` and start(tag, i, column) are as
// above. `overlaps`: a tile may compute rows again, since start is not c.
template <int N, class D, class Last, class Start>
void multiply_rows_of(D d, Last last, Real* c, std::int64_t ldc, const Start& start, bool overlaps, Left a,
                      const Real* b, std::int64_t ldb, std::int64_t m, std::int64_t k) {
  constexpr int kRows = N == 1 || kManyRegisters ? 8 : 4;
  const auto tile = [&]<int M>(std::int64_t i) HWY_ATTR {
    const auto from = [&](auto tag, int row, std::int64_t column)
                          HWY_ATTR { return start(tag, i + row, column); };
    multiply_tile<M, N>(d, last, c + i * ldc, ldc, from, {a.data + i * a.row, a.row, a.col}, b, ldb, k,
                        [] {});
  };
  std::int64_t i = 0;
  for (; i + kRows <= m; i += kRows) tile.template operator()<kRows>(i);
  if (overlaps && i < m && m > kRows) return tile.template operator()<kRows>(m - kRows);
  for (; i + 4 <= m; i += 4) tile.template operator()<4>(i);
  for (; i + 2 <= m; i += 2) tile.template operator()<2>(i);
  if (i < m) tile.template operator()<1>(i);
}

// Computes `columns` <= 2 vectors of them, of c = start + a b, as above. Half of 64 bytes take half as long on some CPUs.
template <class Start>
HWY_INLINE void multiply_columns(std::int64_t columns, Real* c, std::int64_t ldc, const Start& start,
                                 bool overlaps, Left a, const Real* b, std::int64_t ldb, std::int64_t m,
                                 std::int64_t k) {
  constexpr bool kHalves = hn::MaxLanes(Wide()) * sizeof(Real) == 64;
  const Wide d;
  const std::int64_t w = width(d);
  const auto compute = [&]<int N, class D>(D part, std::int64_t count) HWY_ATTR {
    if (count == width(part))
      return multiply_rows_of<N>(part, part, c, ldc, start, overlaps, a, b, ldb, m, k);
    multiply_rows_of<N>(part, First<D>{{}, count}, c, ldc, start, overlaps, a, b, ldb, m, k);
  };
  if (columns > w) return compute.template operator()<2>(d, columns - w);
  if constexpr (kHalves) {
    const hn::Half<Wide> half;
    if (columns <= width(half)) return compute.template operator()<1>(half, columns);
  }
  compute.template operator()<1>(d, columns);
}

enum class Store { overwrite, add };

// Computes C = A B or C += A B of small matrices in cache, with A (m, k), B (k, n) and C (m, n), the latter two
// row-major.
template <Store kStore>
HWY_INLINE void multiply_small(Real* c, std::int64_t ldc, Left a, const Real* b, std::int64_t ldb,
                               std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t panel = 2 * width(Wide());
  for (; n > 0; n -= panel, c += panel, b += panel) {
    const auto start = [=](auto d, [[maybe_unused]] std::int64_t i, [[maybe_unused]] std::int64_t column)
                           HWY_ATTR {
                             if constexpr (kStore == Store::add) return load(d, c + i * ldc + column);
                             return hn::Zero(d);
                           };
    multiply_columns(std::min(n, panel), c, ldc, start, kStore == Store::overwrite, a, b, ldb, m, k);
  }
}

// Writes the transpose of from (rows, cols) to `to` (cols, rows), whose rows are `to_stride` apart, in tiles of 4 x 4 where
// there are vectors of four.
HWY_INLINE void transpose(Real* to, std::int64_t to_stride, const Real* from, std::int64_t stride,
                          std::int64_t rows, std::int64_t cols) {
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
        Real* out = to + c * to_stride + r;
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ef_low)), d, out);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ef_low)), d, out + to_stride);
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ef_high)), d, out + 2 * to_stride);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ef_high)), d, out + 3 * to_stride);
      }
    }
#else
  const std::int64_t tiled_rows = 0, tiled_cols = 0;
#endif
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = r < tiled_rows ? tiled_cols : 0; c < cols; ++c)
      to[c * to_stride + r] = from[r * stride + c];
  }
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // THIMBLE_KERNELS_GEMM_INL_H_
