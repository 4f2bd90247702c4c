#include "program/bench/benchmark.h"
#include "train/config/with_precision.h"

namespace thimble {

Benchmark benchmark(const OpenConfig& config, std::int64_t warmup, std::int64_t steps, Ranks& ranks) {
  ranks.require_equal<ConfigError>({{"--steps", std::to_string(steps)}},
                                   "start the same command for all ranks");
  return with_precision(config, [&]<class R>() { return run_benchmark<R>(config, warmup, steps, ranks); });
}

}  // namespace thimble
