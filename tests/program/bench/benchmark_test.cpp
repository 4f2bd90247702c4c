#include "program/bench/benchmark.h"

#include <algorithm>

#include "catch.h"
#include "train/config/small_config.h"
#include "train/step/cost.h"

using namespace thimble;

TEST_CASE("a benchmark gives the steps asked for, and accounts for the time of its threads",
          "[train][slow]") {
  Config config = small_config();
  config.train.threads = 2;
  const Benchmark b = benchmark(config, 1, 8);
  CHECK(b.step_ms.count == 8);
  CHECK(b.step_ms.min > 0);
  CHECK(b.threads == 2);
  CHECK_THAT(1e6 * b.gflops * b.step_ms.median, WithinRel(step_cost(config).flops, 1e-12));
  CHECK(b.blas_gflops > 0.1);
  CHECK(b.peak_mib > 1);

  for (const char* name : {"data", "forward", "backward", "gradients", "optimizer"}) {
    CAPTURE(name);
    const auto phase = std::ranges::find(b.phases, name, &Benchmark::Phase::name);
    REQUIRE(phase != b.phases.end());
    CHECK(phase->ms > 0);
  }
  CHECK(b.phases.back().name == "waiting");
  // Ops lie within forward and backward.
  double forward = 0, backward = 0;
  for (const auto& op : b.ops) {
    forward += op.forward_ms;
    backward += op.backward_ms;
  }
  const auto ms = [&](const char* name) {
    return std::ranges::find(b.phases, name, &Benchmark::Phase::name)->ms;
  };
  CHECK(forward <= ms("forward"));
  CHECK(backward <= ms("backward"));
  const auto linear = std::ranges::find(b.ops, "linear", &Benchmark::Op::name);
  REQUIRE(linear != b.ops.end());
  // Four in every layer and the output net, in every micro-batch.
  const std::int64_t a_pass = 4 * config.model.layers + (config.model.output.hidden > 0 ? 2 : 1);
  CHECK(linear->calls % a_pass == 0);
  CHECK(linear->backward_ms > 0);
}
