// Matrix products by OpenBLAS.
//   c = alpha op(a) op(b) + beta c
// OpenBLAS first copies both operands into a layout of its own, except for small products with b not
// transposed, for which AVX-512 has a kernel that reads them in place. Larger products are cut into parts for
// it: 104 to 115 GFLOP/s on one Zen 4 core, against 87 to 104 for whole products of the sizes in
// configs/bench.
#include "thimble/kernels/gemm.h"

#include <cblas.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "thimble/core/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

namespace {

#ifdef THIMBLE_DOUBLE
constexpr auto kBlasGemm = cblas_dgemm;
#else
constexpr auto kBlasGemm = cblas_sgemm;
#endif

// Returns the target that THIMBLE_TARGET selects: avx2 or baseline disables the larger instruction sets, so
// that tests on one CPU cover others. It takes effect before main(), when no kernel has been chosen.
// OPENBLAS_CORETYPE does the same for OpenBLAS.
std::string_view selected_target() {
  const char* const name = std::getenv("THIMBLE_TARGET");
  return name == nullptr ? "" : name;
}

bool disable_targets() {
  const std::string_view name = selected_target();
  if (name == "avx2") hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
  if (name == "baseline") hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL | HWY_AVX2);
  return name.empty() || name == "avx2" || name == "baseline";
}

const bool kKnownTarget = disable_targets();

blasint size(std::int64_t n) { return static_cast<blasint>(n); }

// Returns whether OpenBLAS has chosen kernels for AVX-512, which include the one for small matrices.
bool has_small_kernel() {
  const std::string_view core = openblas_get_corename();
  return core == "SkylakeX" || core == "Cooperlake" || core == "SapphireRapids";
}

// The multiplications in a part: below the small kernel's limit of 10^6, and the fastest of those tried.
constexpr std::int64_t kMultiplications = 48 * 64 * 256;

// Returns the third size of a part, in whole vectors.
std::int64_t fitting(std::int64_t other, std::int64_t another) {
  return kMultiplications / std::max<std::int64_t>(1, other * another) / 16 * 16;
}

Part plain_part_of(std::int64_t n, std::int64_t k) {
  const std::int64_t columns = std::min<std::int64_t>(n, 64), depth = std::min<std::int64_t>(k, 256);
  return {fitting(columns, depth), columns, depth};
}

Part transposed_part_of(std::int64_t m, std::int64_t n) {
  const std::int64_t rows = std::min<std::int64_t>(m, 64), columns = std::min<std::int64_t>(n, 128);
  return {rows, columns, fitting(rows, columns)};
}

void blas_gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha, Real beta) {
  const auto trans = [](Op op) { return op == Op::transpose ? CblasTrans : CblasNoTrans; };
  kBlasGemm(CblasRowMajor, trans(op_a), trans(op_b), size(c.rows), size(c.cols),
            size(op_a == Op::transpose ? a.rows : a.cols), alpha, a.data, size(a.stride), b.data,
            size(b.stride), beta, c.data, size(c.stride));
}

struct Sizes {
  std::int64_t m, n, k;
};

Sizes checked_sizes(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b) {
  const bool ta = op_a == Op::transpose, tb = op_b == Op::transpose;
  const std::int64_t m = ta ? a.cols : a.rows, k = ta ? a.rows : a.cols;
  const std::int64_t kb = tb ? b.cols : b.rows, n = tb ? b.rows : b.cols;
  require<ShapeError>(m == c.rows && n == c.cols && k == kb,
                      "gemm: (M, K) x (K, N) -> (M, N): got ({}, {}) x ({}, {}) -> ({}, {})", m, k, kb, n,
                      c.rows, c.cols);
  return {m, n, k};
}

}  // namespace

void gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha, Real beta) {
  static const bool one_thread = (openblas_set_num_threads(1), true);
  static_cast<void>(one_thread);
  require<ConfigError>(kKnownTarget, "THIMBLE_TARGET {}: choose avx2 or baseline, or leave it out",
                       selected_target());
  const auto [m, n, k] = checked_sizes(c, a, op_a, b, op_b);
  if (m == 0 || n == 0) return;
  if (op_b == Op::transpose || k == 0 || !cuts_products()) return blas_gemm(c, a, op_a, b, op_b, alpha, beta);
  gemm_in_parts(c, a, op_a, b, op_b, alpha, beta);
}

void gemm_add(GradientView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b) {
  if (c.data != nullptr) gemm(c, a, op_a, b, op_b, 1, c.uninitialized ? 0 : 1);
}

void gemm_in_parts(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha,
                   Real beta) {
  const Sizes sizes = checked_sizes(c, a, op_a, b, op_b);
  const std::int64_t m = sizes.m, n = sizes.n, k = sizes.k;
  const bool ta = op_a == Op::transpose;
  const Part part = part_of(op_a, m, n, k);
  const auto multiply_part = [&](std::int64_t i, std::int64_t j, std::int64_t p) {
    const std::int64_t rows = std::min(part.m, m - i), columns = std::min(part.n, n - j);
    const std::int64_t depth = std::min(part.k, k - p);
    blas_gemm(c.row_block(i, rows).column_block(j, columns),
              ta ? a.row_block(p, depth).column_block(i, rows) : a.row_block(i, rows).column_block(p, depth),
              op_a, b.row_block(p, depth).column_block(j, columns), op_b, alpha, p == 0 ? beta : 1);
  };
  // The long dimension, which is the tokens in both cases, is the outer loop: the rest stays in cache.
  const auto over = [](std::int64_t size, std::int64_t step, const auto& f) {
    for (std::int64_t at = 0; at < size; at += step) f(at);
  };
  if (ta) {
    over(k, part.k, [&](auto p) {
      over(m, part.m, [&](auto i) { over(n, part.n, [&](auto j) { multiply_part(i, j, p); }); });
    });
  } else {
    over(m, part.m, [&](auto i) {
      over(k, part.k, [&](auto p) { over(n, part.n, [&](auto j) { multiply_part(i, j, p); }); });
    });
  }
}

bool cuts_products() {
  static const bool small_kernel = has_small_kernel();
  return small_kernel;
}

Part part_of(Op op_a, std::int64_t m, std::int64_t n, std::int64_t k) {
  return op_a == Op::transpose ? transposed_part_of(m, n) : plain_part_of(n, k);
}

std::int64_t rows_per_part(std::int64_t n, std::int64_t k) { return plain_part_of(n, k).m; }

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
