// The instruction sets that this CPU and its system have, for programs that are linked statically: Debian has no static
// library of Highway, whose SupportedTargets() answers this elsewhere.
#pragma once

#include <hwy/highway.h>

#include <cstdint>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace thimble::kernels {

// Returns bits such as HWY_AVX2, of those that thimble compiles for; a test compares them with Highway's.
inline std::int64_t cpu_targets() {
  std::int64_t targets = HWY_STATIC_TARGET;
#if HWY_ARCH_X86
  __builtin_cpu_init();
  // Clang's __builtin_cpu_supports() knows neither of these.
  unsigned a = 0, b = 0, d = 0, features = 0, extended = 0;
  __get_cpuid(1, &a, &b, &features, &d);
  __get_cpuid(0x80000001, &a, &b, &extended, &d);
  const bool f16c = (features & bit_F16C) != 0, lzcnt = (extended & bit_LZCNT) != 0;
  // Highway asks for all that a compiler may use for the target.
  const bool sse4 = __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                    __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
  const bool avx2 = sse4 && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("fma") && f16c && lzcnt;
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
  if (sse4) targets |= HWY_SSE4;
  if (avx2) targets |= HWY_AVX2;
  if (avx3) targets |= HWY_AVX3;
#endif
  return targets;
}

}  // namespace thimble::kernels
