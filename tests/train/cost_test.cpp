// The cost of a config, and jobs that are refused since they would not fit.
#include "train/step/cost.h"

#include <cmath>
#include <string>

#include "catch.h"
#include "files/temporary_directory.h"
#include "program/bench/benchmark.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/inspect.h"
#include "thimble/train/json.h"
#include "train/files/thread_pool.h"
#include "train/small_config.h"
#include "train/step/eval_sums.h"
#include "train/step/trainer.h"

using namespace thimble;

namespace {

constexpr double kBytes = sizeof(Real);

// Returns the bytes of both packed forms of every matrix.
double packed_bytes(const Config& config) {
  const Trainer trainer(config);
  return kBytes * static_cast<double>(PackedWeights::size(trainer.model().parameters()));
}

// Larger than any machine.
Config huge_config() {
  Config config = small_config();
  config.model.d_model = 1'000'000;
  config.model.d_ff = 1'000'000;
  return config;
}

std::string complaint(const Config& config, double available, Job job = Job::training) {
  try {
    require_memory(estimate_memory(job, config), {.available = available});
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a micro-batch is sized by the length, and in training by the shard", "[train]") {
  CHECK(micro_batch(1) == 256);
  CHECK(micro_batch(100) == 2);
  CHECK(micro_batch(256) == 1);
  CHECK(micro_batch(8192) == 1);
  TrainConfig train;
  train.batch = 11;
  train.shards = 4;
  CHECK(largest_micro_batch(train, 16) == 3);
  CHECK(largest_micro_batch(train, 128) == 2);
  train.batch = 12;
  CHECK(largest_micro_batch(train, 16) == 3);
  train.batch = 50;  // 13 sequences, 6 at most at once: 5 + 4 + 4
  CHECK(micro_batches_of_shard(train, 37) == 3);
  CHECK(largest_micro_batch(train, 37) == 5);
}

TEST_CASE("parameters, gradients and moments are the buffers of a trainer", "[train]") {
  Config config = small_config();
  config.train.shards = 3;
  const double count = step_cost(config).parameters;
  CHECK(packed_bytes(config) > 2 * kBytes * 0.8 * count);
  CHECK(count == static_cast<double>(Trainer(config).model().parameters().count()));
  const MemoryEstimate adam = estimate_memory(Job::training, config);
  CHECK(adam.parameters == kBytes * count + packed_bytes(config));
  CHECK(adam.gradients == 3 * kBytes * count);
  CHECK(estimate_memory(Job::training, config, 2).gradients == 2.5 * kBytes * count);
  CHECK(estimate_memory(Job::training, config, 3).gradients == (1 + 2.0 / 3) * kBytes * count);
  CHECK(adam.optimizer == 2 * kBytes * count);
  config.train.optimizer.name = OptimizerKind::sgd;
  CHECK(estimate_memory(Job::training, config).optimizer == kBytes * count);
  config.train.precision = Precision::float64;
  CHECK(estimate_memory(Job::training, config).gradients == 3 * 8 * count);
}

TEST_CASE("every thread has activations of its own", "[train]") {
  Config config = small_config();
  const double one = estimate_memory(Job::training, config).activations;
  CHECK(one > 0);
  config.train.threads = 5;
  CHECK(estimate_memory(Job::training, config).activations == 5 * one);
  config.train.threads = 0;
  CHECK(estimate_memory(Job::training, config).activations == static_cast<double>(usable_cores()) * one);
}

TEST_CASE("logging heads takes another model and tape", "[train]") {
  Config config = small_config();
  const MemoryEstimate before = estimate_memory(Job::training, config);
  config.train.log_heads = true;
  const MemoryEstimate after = estimate_memory(Job::training, config);
  CHECK(after.parameters == 2 * before.parameters);
  CHECK(after.activations > before.activations);
}

TEST_CASE("an evaluation has no gradients, a check of the model's gradients is in double", "[train]") {
  Config config = small_config();
  const double count = step_cost(config).parameters;
  config.data.test = 100'000;
  const MemoryEstimate evaluation = estimate_memory(Job::evaluation, config);
  CHECK(evaluation.parameters == kBytes * count + packed_bytes(config));
  CHECK(evaluation.gradients + evaluation.optimizer + evaluation.checkpoint ==
        0);  // the file is closed by then
  CHECK(evaluation.activations > 0);
  const std::int64_t at_once = micro_batch(config.task.length);
  CHECK(evaluation.sums == sizeof(EvalSums) * std::ceil(1e5 / static_cast<double>(at_once)));
  CHECK(evaluation_memory(config, 200'000).sums > 1.9 * evaluation.sums);
  config.data.validation = config.data.test = 1;  // reading the file takes more than a sequence
  config.model.d_ff = 4096;
  const MemoryEstimate reading = estimate_memory(Job::evaluation, config);
  CHECK(reading.checkpoint == 3 * kBytes * step_cost(config).parameters);
  CHECK(reading.activations == 0);
  const MemoryEstimate check = estimate_memory(Job::model_check, small_config());
  CHECK(check.parameters == 8 * count);
  CHECK(check.gradients == 8 * count);
  CHECK(check.activations > 0);
}

TEST_CASE("a config is refused when it needs more than there is", "[train]") {
  for (const Job job : {Job::training, Job::evaluation, Job::model_check}) {
    const double needed = estimate_memory(job, small_config()).total();
    CHECK(complaint(small_config(), needed, job).empty());
    CHECK_THAT(complaint(small_config(), needed - 1, job), StartsWith("this config needs about "));
  }
}

TEST_CASE("a refusal gives the parts, what there is, and the keys that the largest part grows with",
          "[train]") {
  Config config = small_config();
  config.train.precision = Precision::float32;
  config.model.d_model = 8192;
  config.model.d_ff = 8192;
  config.train.shards = 24;
  const std::string message = complaint(config, 3.5 * (1 << 30));
  CAPTURE(message);
  CHECK_THAT(message, ContainsSubstring(" of memory, but only 3.5 GiB is free:\n"));
  CHECK_THAT(message, ContainsSubstring("\n  parameters        4.5 GiB\n"));
  CHECK_THAT(message, ContainsSubstring("\n  gradients        36.0 GiB\n"));
  CHECK_THAT(message, ContainsSubstring("\n  optimizer         3.0 GiB\n"));
  CHECK_THAT(message, ContainsSubstring("\n  activations "));
  CHECK_THAT(message, ContainsSubstring("\nlower train.shards, "));
  config.train.shards = 1;
  CHECK_THAT(complaint(config, 1), ContainsSubstring("\nlower model.d_model, "));
  config = small_config();
  config.task.length = 8192;
  CHECK_THAT(complaint(config, 1), ContainsSubstring("\nlower task.length, train.threads, "));
  config = small_config();
  config.data.test = 1'000'000'000;
  CHECK_THAT(complaint(config, 1), ContainsSubstring("\nlower data.validation or data.test"));
}

TEST_CASE("a refusal names what sets the limit, and for address space what threads reserve", "[train]") {
  constexpr double kMiB = 1 << 20;
  Config config = small_config();
  const auto refused = [&](const MemoryLimit& limit) {
    try {
      require_memory(estimate_memory(Job::training, config), limit);
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK_THAT(refused({.kind = MemoryLimit::control_group, .available = 0}),
             ContainsSubstring(" 0 B is left by the limit of its control group:\n"));
  MemoryLimit limit{.kind = MemoryLimit::address_space,
                    .available = 0,
                    .limit = 500 * kMiB,
                    .taken = 250 * kMiB,
                    .reserved = 144 * kMiB};
  config.train.threads = 2;
  const double needed = estimate_memory(Job::training, config).total();
  const auto enough = static_cast<std::int64_t>(((250 + 2 * 144) * kMiB + needed) / 1024) + 1;
  const std::string two = refused(limit);
  CAPTURE(two);
  CHECK_THAT(two, ContainsSubstring("address space (ulimit -v): of its 500.0 MiB, the program uses "
                                    "250.0 MiB, and 2 threads\nwill reserve 144.0 MiB each "));
  CHECK_THAT(two, ContainsSubstring(
                      fmt::format("set ulimit -v to {} or more, set train.threads=1, or lower ", enough)));
  config.train.threads = 1;
  const std::string one = refused(limit);
  CAPTURE(one);
  CHECK_THAT(one, ContainsSubstring(" and 1 thread\nwill reserve 144.0 MiB for stacks"));
  CHECK_THAT(one, ContainsSubstring(" or more, or lower "));
  limit.available = needed;
  CHECK(refused(limit).empty());
}

TEST_CASE("every job refuses what would not fit, and writes nothing", "[train]") {
  const TemporaryDirectory directory;
  const ModelSource source{huge_config(), directory / "no-weights"};
  const std::string out = (directory / "run").string();
  CHECK_THROWS_AS(train(huge_config(), {.directory = out}), ConfigError);
  CHECK_THROWS_AS(benchmark(huge_config(), 1, 1), ConfigError);
  CHECK_THROWS_AS(evaluate(source, Split::test), ConfigError);
  CHECK_THROWS_AS(check_model(huge_config()), ConfigError);
  CHECK_THROWS_AS(inspect(source, {}), ConfigError);
  CHECK(directory.files() == 0);
}

TEST_CASE("the cost as JSON", "[train]") {
  const Json json = cost_json(small_config());
  CHECK(json.at("parameters") == step_cost(small_config()).parameters);
  CHECK(json.at("flops_per_step") == step_cost(small_config()).flops);
  double flops = 0;
  for (const Json& op : json.at("ops"))
    flops += op.at("forward_flops").get<double>() + op.at("backward_flops").get<double>();
  CHECK(flops == step_cost(small_config()).flops);
  const auto& memory = json.at("memory_bytes");
  double sum = 0;
  for (const auto& [name, bytes] : memory.items()) sum += name == "total" ? 0 : bytes.get<double>();
  CHECK(sum == memory.at("total"));
}
