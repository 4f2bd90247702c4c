#include "program/bench/benchmark.h"

#include "thimble/engine/real.h"

namespace thimble {

inline namespace f32 {
Benchmark run_benchmark(const OpenConfig& config, std::int64_t warmup, std::int64_t steps, Ranks& ranks);
}
namespace f64 {
Benchmark run_benchmark(const OpenConfig& config, std::int64_t warmup, std::int64_t steps, Ranks& ranks);
}

Benchmark benchmark(const OpenConfig& config, std::int64_t warmup, std::int64_t steps, Ranks& ranks) {
  ranks.require_equal<ConfigError>({{"--steps", std::to_string(steps)}},
                                   "start the same command for all ranks");
  const bool single = config.train.precision == Precision::float32;
  return single ? f32::run_benchmark(config, warmup, steps, ranks)
                : f64::run_benchmark(config, warmup, steps, ranks);
}

}  // namespace thimble
