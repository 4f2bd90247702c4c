// Selects what computes by THIMBLE_TARGET and THIMBLE_GEMM, before main(). The program and every test program link it.
#include <cstdlib>
#include <string_view>

#include "engine/kernels/products/backend.h"

namespace thimble {
namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

[[maybe_unused]] const bool kSelected =
    (select_backend(environment("THIMBLE_TARGET"), environment("THIMBLE_GEMM")), true);

}  // namespace
}  // namespace thimble
