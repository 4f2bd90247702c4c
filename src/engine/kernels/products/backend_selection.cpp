#include <hwy/targets.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/kernels/products/backend.h"
#include "thimble/engine/error.h"

namespace thimble {
namespace {

struct Selection {
  std::string target, gemm;
};

// A function, since it is called before main().
Selection& selection() {
  static Selection names;
  return names;
}

// Returns the instruction sets above the named one; 0 for no known name.
std::int64_t larger_targets(std::string_view name) {
  std::int64_t larger = 0;
  if (name == "avx2" || name == "sse4" || name == "baseline") larger |= HWY_AVX3 | HWY_AVX3_DL;
  if (name == "sse4" || name == "baseline") larger |= HWY_AVX2;
  if (name == "baseline") larger |= HWY_SSE4;
  return larger;
}

bool selects_openblas() {
  const auto& [target, gemm] = selection();
  require<ConfigError>(target.empty() || larger_targets(target) != 0,
                       "THIMBLE_TARGET {}: choose avx2, sse4 or baseline, or leave it out", target);
  require<ConfigError>(gemm.empty() || gemm == "openblas",
                       "THIMBLE_GEMM {}: choose openblas, or leave it out", gemm);
  require<ConfigError>(gemm.empty() || !kernels::blas_kernel().empty(),
                       "THIMBLE_GEMM {}: this program was built without OpenBLAS; leave it out", gemm);
  return gemm == "openblas";
}

}  // namespace

void select_backend(std::string_view target, std::string_view gemm) {
  selection() = {std::string(target), std::string(gemm)};
  hwy::DisableTargets(larger_targets(target));
}

bool uses_openblas() {
  static const bool selected = selects_openblas();
  return selected;
}

}  // namespace thimble
