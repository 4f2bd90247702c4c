#include "thimble/kernels/backend.h"

#include <cblas.h>
#include <hwy/targets.h>

#include <cstdint>
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

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Disables the instruction sets that THIMBLE_TARGET leaves out, so that tests on one CPU cover others, and
// returns whether it is a known name. It takes effect before main(), when no kernel has been chosen.
// OPENBLAS_CORETYPE does the same for OpenBLAS.
bool disable_targets() {
  const std::string_view name = environment("THIMBLE_TARGET");
  std::int64_t larger = 0;
  if (name == "avx2" || name == "sse4" || name == "baseline") larger |= HWY_AVX3 | HWY_AVX3_DL;
  if (name == "sse4" || name == "baseline") larger |= HWY_AVX2;
  if (name == "baseline") larger |= HWY_SSE4;
  hwy::DisableTargets(larger);
  return name.empty() || larger != 0;
}

const bool kKnownTarget = disable_targets();

bool selects_openblas() {
  require<ConfigError>(kKnownTarget, "THIMBLE_TARGET {}: choose avx2, sse4 or baseline, or leave it out",
                       environment("THIMBLE_TARGET"));
  const std::string_view name = environment("THIMBLE_GEMM");
  require<ConfigError>(name.empty() || name == "openblas",
                       "THIMBLE_GEMM {}: choose openblas, or leave it out", name);
  return name == "openblas";
}

blasint size(std::int64_t n) { return static_cast<blasint>(n); }

}  // namespace

bool uses_openblas() {
  static const bool selected = selects_openblas();
  return selected;
}

void blas_gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha, Real beta) {
  static const bool one_thread = (openblas_set_num_threads(1), true);
  static_cast<void>(one_thread);
  const auto trans = [](Op op) { return op == Op::transpose ? CblasTrans : CblasNoTrans; };
  kBlasGemm(CblasRowMajor, trans(op_a), trans(op_b), size(c.rows), size(c.cols),
            size(op_a == Op::transpose ? a.rows : a.cols), alpha, a.data, size(a.stride), b.data,
            size(b.stride), beta, c.data, size(c.stride));
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
