#include "train/step/cost.h"

#include <algorithm>
#include <cmath>

#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "thimble/train/prediction.h"
#include "train/data/table/table.h"
#include "train/files/memory.h"
#include "train/files/text/format.h"
#include "train/files/thread_pool.h"
#include "train/step/eval_sums.h"
#include "train/step/plan.h"

namespace thimble {

namespace {

// With this many tokens the activations of one block of a small model fit a core's cache: of 128, 256 and 512,
// configs/bench/tiny.yaml is a sixth faster with 256 than with 512, and larger models are 1 % slower.
constexpr std::int64_t kMicroBatchTokens = 256;

constexpr PlanOptions kTrainingOptions{.gradients = true, .dropout = true}, kEvaluationOptions{};

// Returns the bytes of the program before it computes, plus those of each thread: stack, heap, and the used
// part of OpenBLAS's buffer; measured on Debian 12.
double program_memory(std::int64_t threads) {
  constexpr double kProgram = 10.25 * (1 << 20), kThread = 0.25 * (1 << 20);
  return kProgram + kThread * static_cast<double>(threads);
}

double moments_of(const Config& config) { return config.train.optimizer.name == OptimizerKind::sgd ? 1 : 2; }

// Returns the bytes of the vocabulary, in the dataset and in a report, and of data files.
double data_memory(const Config& config) {
  constexpr double kCopies = 2, kNode = 96;  // of a map of tokens, which reading leaves in the heap
  const auto vocabulary = static_cast<double>(model_sizes(config).vocabulary);
  return kCopies * sizeof(std::string) * vocabulary +
         (config.task.table != nullptr ? config.task.table->bytes() + kNode * vocabulary : 0);
}

// The tapes of a thread that evaluates a split, and the sums of all its micro-batches.
struct Evaluation {
  double tapes = 0, sums = 0;
};

Evaluation evaluation_of(const Config& config, std::int64_t sequences) {
  const std::int64_t at_once = micro_batch(tokens_of(config)), largest = std::min(at_once, sequences);
  if (sequences == 0) return {};
  const ModelPlan decoding = plan_pass(config, largest, {.decoding = true});
  constexpr double kSmallBlocks = 0.5 * (1 << 20);  // that decoding leaves in the heap of a thread
  return {
      .tapes = decoding.tape_bytes + decoding.other_bytes + (decoding.other_bytes > 0 ? kSmallBlocks : 0) +
               plan_pass(config, largest, kEvaluationOptions).tape_bytes,
      .sums = sizeof(EvalSums) * std::ceil(static_cast<double>(sequences) / static_cast<double>(at_once))};
}

std::int64_t evaluated(const Config& config) {
  const DataConfig sizes = split_sizes(config.task, config.data);
  return std::max(sizes.validation, sizes.test);
}

MemoryEstimate training_memory(const Config& config, int ranks) {
  const std::int64_t length = tokens_of(config), threads = threads_of(config);
  const ModelPlan training = plan_pass(config, largest_micro_batch(config.train, length), kTrainingOptions);
  const Evaluation evaluation = evaluation_of(config, evaluated(config));
  double tapes = training.tape_bytes + evaluation.tapes;
  // Logging heads takes another model with its tapes.
  const double models = config.train.log_heads ? 2 : 1;
  if (config.train.log_heads) tapes += plan_pass(config, micro_batch(length), {.observed = true}).tape_bytes;
  const double weights = real_size(config) * training.parameters, moments = moments_of(config);
  // A rank has whole gradients of its shards, and of the others its share, if it gets them one by one.
  const auto shards = static_cast<double>(config.train.shards);
  const double own = std::ceil(shards / ranks);
  return {.threads = threads,
          .program = program_memory(threads),
          .data = data_memory(config),
          .parameters = models * (weights + training.packed_bytes),
          .gradients = (own + (shards - own) / ranks) * weights,
          .optimizer = moments * weights,
          .activations = static_cast<double>(threads) * tapes,
          .checkpoint = (1 + moments) * weights,
          .sums = evaluation.sums};
}

MemoryEstimate check_memory(Config config) {
  config.train.precision = Precision::float64;
  // Of two tapes, both apply dropout, and one has no gradients.
  const auto pass = [&](bool gradients) {
    return plan_pass(config, kModelCheckSequences, {.gradients = gradients, .dropout = true});
  };
  const ModelPlan backward = pass(true);
  const double weights = sizeof(double) * backward.parameters;
  return {.program = program_memory(1),
          .parameters = weights,
          .gradients = weights,
          .activations = backward.tape_bytes + pass(false).tape_bytes};
}

// Returns the keys that determine the largest part.
std::string_view remedy(const MemoryEstimate& memory) {
  const auto parts = memory.parts();
  const auto largest = std::ranges::max_element(parts, {}, [](const auto& part) { return part.second; });
  if (largest->first == "activations")
    return "task.length, train.threads, model.layers, model.heads or model.d_model";
  if (largest->first == "gradients") return "train.shards, model.d_model, model.d_ff or model.layers";
  if (largest->first == "sums") return "data.validation or data.test";
  if (largest->first == "sequences") return "--sequences, --examples, task.length or model.heads";
  if (largest->first == "data") return "the size of task.file";
  return "model.d_model, model.d_ff, model.layers or task.symbols";
}

// Returns the message for a limit on address space, which also counts reserved memory.
std::string address_space_message(const MemoryEstimate& memory, const MemoryLimit& limit) {
  const std::int64_t threads = memory.threads;
  const double reserved = limit.reserved * static_cast<double>(threads);
  const auto enough = static_cast<std::int64_t>((limit.taken + reserved + memory.total()) / 1024) + 1;
  return fmt::format(
      "this config needs about {} of memory, but only {} is left under the limit on\n"
      "address space (ulimit -v): of its {}, the program uses {}, and {} thread{}\n"
      "will reserve {}{} for stacks and buffers, most of which is never used:\n"
      "{}set ulimit -v to {} or more{}, or lower {}",
      format_bytes(memory.total()), format_bytes(limit.available), format_bytes(limit.limit),
      format_bytes(limit.taken), threads, threads == 1 ? "" : "s", format_bytes(limit.reserved),
      threads == 1 ? "" : " each", describe(memory), enough, threads == 1 ? "" : ", set train.threads=1",
      remedy(memory));
}

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t largest_shard(const TrainConfig& train) { return ceil_divide(train.batch, train.shards); }

}  // namespace

std::int64_t micro_batch(std::int64_t length) {
  return std::max<std::int64_t>(1, kMicroBatchTokens / length);
}

std::int64_t micro_batches_of_shard(const TrainConfig& train, std::int64_t length) {
  return ceil_divide(largest_shard(train), micro_batch(length));
}

std::int64_t largest_micro_batch(const TrainConfig& train, std::int64_t length) {
  return ceil_divide(largest_shard(train), micro_batches_of_shard(train, length));
}

ModelSizes model_sizes(const Config& config) {
  const Layout layout = layout_of(config.model);
  return {std::ssize(token_names(config.task, layout)), model_length(config.task, layout),
          source_length(config.task, layout)};
}

Batch full_batch(const Config& config, std::int64_t sequences) {
  const ModelSizes sizes = model_sizes(config);
  const std::int64_t labels = config.model.output.per == OutputPer::sequence ? 1 : sizes.length;
  const auto size = [&](std::int64_t of_each) { return static_cast<std::size_t>(sequences * of_each); };
  Batch batch;
  batch.sequences = sequences;
  batch.length = sizes.length;
  batch.tokens.resize(size(sizes.length));
  batch.lengths.assign(size(1), static_cast<std::int32_t>(sizes.length));
  batch.source_length = sizes.source_length;
  batch.sources.resize(size(sizes.source_length));
  if (sizes.source_length > 0)
    batch.source_lengths.assign(size(1), static_cast<std::int32_t>(sizes.source_length));
  for (std::vector<std::int32_t>* each : {&batch.labels, &batch.rows, &batch.row_labels})
    each->resize(size(labels));
  return batch;
}

StepCost step_cost(const Config& config) {
  const std::int64_t sequences = largest_micro_batch(config.train, tokens_of(config));
  ModelPlan plan = plan_pass(config, sequences, kTrainingOptions);
  StepCost cost{.parameters = plan.parameters, .sequences = sequences, .ops = std::move(plan.ops)};
  const double micro_batches = static_cast<double>(config.train.batch) / static_cast<double>(sequences);
  for (OpCost& op : cost.ops) {
    op.flops = {micro_batches * op.flops.forward, micro_batches * op.flops.backward};
    cost.flops += op.flops.total();
  }
  return cost;
}

double MemoryEstimate::total() const {
  double sum = 0;
  for (const auto& [name, bytes] : parts()) sum += bytes;
  return sum;
}

MemoryEstimate estimate_memory(Job job, const Config& config, int ranks) {
  switch (job) {
    case Job::training:
      return training_memory(config, ranks);
    case Job::evaluation:
      return evaluation_memory(config, evaluated(config));
    case Job::model_check:
      break;
  }
  return check_memory(config);
}

MemoryEstimate evaluation_memory(const Config& config, std::int64_t sequences, bool predictions) {
  const Evaluation evaluation = evaluation_of(config, sequences);
  MemoryEstimate running = evaluator_memory(config);
  running.activations = static_cast<double>(running.threads) * evaluation.tapes;
  running.sums = evaluation.sums;
  // Input, target and answer, as numbers and then as text, whose tokens have about as many bytes as a number.
  constexpr double kRow = sizeof(Prediction) + 128, kToken = 3 * 2 * sizeof(std::int32_t);
  if (predictions)
    running.sequences =
        static_cast<double>(sequences) * (kRow + kToken * static_cast<double>(tokens_of(config)));
  return peak({evaluator_memory(config, true), running});
}

MemoryEstimate evaluator_memory(const Config& config, bool loading) {
  const ModelPlan plan = plan_pass(config, 1, kEvaluationOptions);
  const double weights = real_size(config) * plan.parameters;
  return {.threads = threads_of(config),
          .program = program_memory(threads_of(config)),
          .data = data_memory(config),
          .parameters = weights + plan.packed_bytes,
          .checkpoint = loading ? (1 + moments_of(config)) * weights : 0};
}

MemoryEstimate peak(std::initializer_list<MemoryEstimate> phases) {
  return *std::ranges::max_element(phases, {}, &MemoryEstimate::total);
}

ModelPlan plan_pass(const Config& config, std::int64_t sequences, const PlanOptions& options) {
  return plan_model(config, full_batch(config, sequences), options);
}

double real_size(const Config& config) {
  return config.train.precision == Precision::float64 ? sizeof(double) : sizeof(float);
}

std::int64_t tokens_of(const Config& config) {
  const ModelSizes sizes = model_sizes(config);
  return sizes.length + sizes.source_length;
}

std::int64_t threads_of(const Config& config) {
  return config.train.threads > 0 ? config.train.threads : usable_cores();
}

std::string describe(const MemoryEstimate& memory) {
  std::string lines;
  for (const auto& [name, bytes] : memory.parts())
    if (bytes > 0) lines += fmt::format("  {:<14} {:>10}\n", name, format_bytes(bytes));
  return lines;
}

void require_memory(const MemoryEstimate& memory, const MemoryLimit& limit) {
  if (memory.total() <= limit.available) return;
  const std::string needed = format_bytes(memory.total()), left = format_bytes(limit.available);
  if (limit.kind == MemoryLimit::address_space) throw ConfigError(address_space_message(memory, limit));
  throw ConfigError(fmt::format(
      "this config needs about {} of memory, but only {} is {}:\n{}lower {}", needed, left,
      limit.kind == MemoryLimit::control_group ? "left by the limit of its control group" : "free",
      describe(memory), remedy(memory)));
}

void require_memory(const MemoryEstimate& memory) {
  require_memory(memory, available_memory(memory.threads));
}

Json to_json(const MemoryEstimate& memory) {
  Json bytes{{"total", memory.total()}};
  for (const auto& [name, part] : memory.parts()) bytes[std::string(name)] = part;
  return bytes;
}

Json cost_json(const Config& config) {
  const StepCost step = step_cost(config);
  Json ops = Json::array();
  for (const OpCost& op : step.ops)
    ops.push_back({{"layer", op.layer},
                   {"op", op.op},
                   {"calls", op.calls},
                   {"bytes", op.bytes},
                   {"forward_flops", op.flops.forward},
                   {"backward_flops", op.flops.backward}});
  return {{"parameters", static_cast<std::int64_t>(step.parameters)},
          {"flops_per_step", step.flops},
          {"memory_bytes", to_json(estimate_memory(Job::training, config))},
          {"micro_batch", step.sequences},
          {"ops", ops}};
}

}  // namespace thimble
