// The cost of a config, its memory, and when that does not suffice.
#include "train/step/cost.h"

#include <cmath>
#include <string>

#include "catch.h"
#include "thimble/train/json.h"
#include "train/config/small_config.h"
#include "train/data/table/table.h"
#include "train/files/thread_pool.h"
#include "train/step/micro_batch.h"
#include "train/step/plan.h"
#include "train/step/trainer.h"

using namespace thimble;

namespace {

constexpr double kBytes = sizeof(Real);

// Returns the bytes of both packed forms of every matrix.
double packed_bytes(const Config& config) {
  const Trainer trainer(config);
  return kBytes * static_cast<double>(PackedWeights::size(trainer.model().parameters()));
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
  const MemoryEstimate adam = training_memory(config);
  CHECK(adam.parameters == kBytes * count + packed_bytes(config));
  CHECK(adam.gradients == 3 * kBytes * count);
  CHECK(training_memory(config, 2).gradients == 2.5 * kBytes * count);
  CHECK(training_memory(config, 3).gradients == (1 + 2.0 / 3) * kBytes * count);
  CHECK(adam.optimizer == 2 * kBytes * count);
  config.train.optimizer.name = OptimizerKind::sgd;
  CHECK(training_memory(config).optimizer == kBytes * count);
  config.train.precision = Precision::float64;
  CHECK(training_memory(config).gradients == 3 * 8 * count);
}

TEST_CASE("a step is counted with the labels that it has, however it is cut", "[train]") {
  Config config = small_config();
  config.task = {.name = "associative_recall", .symbols = 16, .length = 16};
  config.model.attention.mask = Mask::causal;
  const OpenConfig opened(config);
  const auto flops_of = [&](const Batch& batch) {
    double sum = 0;
    for (const OpCost& op : plan_model(opened, batch, PlannedPass::training).ops) sum += op.flops.total();
    return sum;
  };
  const Dataset data = make_dataset(opened);
  double expected = 0;
  for (std::int64_t step = 0; step < kCountedSteps; ++step) {
    Batch batch;
    data.fill_step(step, config.train.batch, 0, config.train.batch, batch);
    REQUIRE(batch.rows.size() < batch.labels.size());
    expected += flops_of(batch) / kCountedSteps;
  }
  CHECK_THAT(step_cost(opened).flops, WithinRel(expected, 1e-12));
  CHECK(expected < 0.9 * flops_of(full_batch(opened, config.train.batch)));
}

TEST_CASE("rows of a file are counted at the lengths that a step pads them to", "[train]") {
  DataTexts texts{.main = {"short.tsv", "a b\tb a\na a\ta a\nb b\tb b\n"},
                  .validation = {{"v.tsv", "b a\ta b\n"}},
                  .test = {{"long.tsv", ""}}};
  for (int i = 0; i < 20; ++i) texts.test->text += i == 0 ? "a" : " a";
  texts.test->text += "\t" + texts.test->text + "\n";
  Config config = small_config();
  config.task = {.name = "file"};
  config.train.batch = 3;
  config.train.shards = 1;
  const OpenConfig opened(config, std::make_shared<const Table>(texts));
  REQUIRE(model_sizes(opened).length == 20);
  double expected = 0;
  for (const OpCost& op : plan_model(opened, full_batch(opened, 3, {2, 0}), PlannedPass::training).ops)
    expected += op.flops.total();
  CHECK_THAT(step_cost(opened).flops, WithinRel(expected, 1e-12));
}

TEST_CASE("every thread has activations of its own", "[train]") {
  Config config = small_config();
  const double one = training_memory(config).activations;
  CHECK(one > 0);
  config.train.threads = 5;
  CHECK(training_memory(config).activations == 5 * one);
  config.train.threads = 0;
  CHECK(training_memory(config).activations == static_cast<double>(usable_cores()) * one);
}

TEST_CASE("logging heads takes another model and tape", "[train]") {
  Config config = small_config();
  const MemoryEstimate before = training_memory(config);
  config.train.log_heads = true;
  const MemoryEstimate after = training_memory(config);
  CHECK(after.parameters == 2 * before.parameters);
  CHECK(after.activations > before.activations);
}

TEST_CASE("a check of the model's gradients is in double", "[train]") {
  const double count = step_cost(small_config()).parameters;
  const MemoryEstimate check = model_check_memory(small_config());
  CHECK(check.parameters == 8 * count);
  CHECK(check.gradients == 8 * count);
  CHECK(check.activations > 0);
}

namespace {

std::string refusal_of(const OpenConfig& config, double available) {
  try {
    require_fit(training_memory(config), available);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a refusal gives the parts, what there is, and the keys that the largest part grows with",
          "[train]") {
  const double needed = training_memory(small_config()).total();
  CHECK(refusal_of(small_config(), needed).empty());
  CHECK_THAT(
      refusal_of(small_config(), needed - 1),
      StartsWith("this config needs about ") && ContainsSubstring("\nlower task.length, train.threads, "));
  Config config = small_config();
  config.train.precision = Precision::float32;
  config.model.d_model = 8192;
  config.model.d_ff = 8192;
  config.train.shards = 24;
  const std::string message = refusal_of(config, 3.5 * (1 << 30));
  CAPTURE(message);
  CHECK_THAT(message, ContainsSubstring(" of memory, but only 3.5 GiB is left:\n"));
  CHECK_THAT(message, ContainsSubstring("\n  parameters        4.5 GiB\n"));
  CHECK_THAT(message, ContainsSubstring("\n  gradients        36.0 GiB\n"));
  CHECK_THAT(message, ContainsSubstring("\n  optimizer         3.0 GiB\n"));
  CHECK_THAT(message, ContainsSubstring("\n  activations "));
  CHECK_THAT(message, ContainsSubstring("\nlower train.shards, "));
  config.train.shards = 1;
  CHECK_THAT(refusal_of(config, 1), ContainsSubstring("\nlower model.d_model, "));
  config = small_config();
  config.task.length = 8192;
  CHECK_THAT(refusal_of(config, 1), ContainsSubstring("\nlower task.length, train.threads, "));
  config = small_config();
  config.data.test = 1'000'000'000;
  CHECK_THAT(refusal_of(config, 1), ContainsSubstring("\nlower data.validation or data.test"));
}

TEST_CASE("attention weights that are kept must fit", "[train]") {
  const Config config = small_config();
  const auto cells = static_cast<double>(config.task.length * config.task.length);
  const double weights = cells * static_cast<double>(config.model.layers * config.model.heads);
  CHECK_NOTHROW(require_attention_fits(config, 10, 3, 30 * sizeof(double) * weights));
  CHECK_THROWS_WITH(require_attention_fits(config, 10, 3, 30 * sizeof(double) * weights - 1),
                    StartsWith("the attention weights of 10 sequences take ") &&
                        EndsWith("; lower their number with --sequences or --examples"));
}
