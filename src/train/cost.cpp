#include "thimble/train/cost.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "thimble/core/error.h"
#include "thimble/core/format.h"
#include "thimble/core/json.h"
#include "thimble/core/memory.h"
#include "thimble/core/thread_pool.h"
#include "thimble/model/attention_layer.h"
#include "thimble/train/plan.h"

namespace thimble {

namespace {

// With this many tokens the activations of one block of a small model fit a core's cache: of 128, 256 and 512,
// configs/bench/tiny.yaml is a sixth faster with 256 than with 512, and larger models are 1 % slower.
constexpr std::int64_t kMicroBatchTokens = 256;

// Returns the tokens of the longest sequence and of its source.
std::int64_t tokens_of(const Config& config) {
  const ModelSizes sizes = model_sizes(config);
  return sizes.length + sizes.source_length;
}

std::int64_t threads_of(const Config& config) {
  return config.train.threads > 0 ? config.train.threads : usable_cores();
}

ModelPlan plan_of(const Config& config, std::int64_t sequences, const PlanOptions& options) {
  return plan_model(config, full_batch(config, sequences), options);
}

constexpr PlanOptions kTrainingOptions{.gradients = true, .dropout = true}, kEvaluationOptions{},
    kObservedOptions{.observed = true};

// Returns the bytes of the program before it computes, plus those of each thread: stack, heap, and the used
// part of OpenBLAS's buffer; measured on Debian 12.
double program_memory(double threads) {
  constexpr double kProgram = 9.75 * (1 << 20), kThread = 0.25 * (1 << 20);
  return kProgram + kThread * threads;
}

double real_size(const Config& config) {
  return config.train.precision == Precision::float64 ? sizeof(double) : sizeof(float);
}

MemoryEstimate training_memory(const Config& config, int ranks) {
  const std::int64_t length = tokens_of(config);
  const std::int64_t evaluated = std::max(config.data.validation, config.data.test);
  const std::int64_t evaluated_at_once = std::min(micro_batch(length), evaluated);
  const ModelPlan training = plan_of(config, largest_micro_batch(config.train, length), kTrainingOptions);
  const ModelPlan decoding = plan_of(config, evaluated_at_once, {.decoding = true});
  double tapes = training.tape_bytes + decoding.tape_bytes + decoding.other_bytes +
                 plan_of(config, evaluated_at_once, kEvaluationOptions).tape_bytes;
  // Logging heads takes another model with its tapes.
  const double models = config.train.log_heads ? 2 : 1;
  if (config.train.log_heads) tapes += plan_of(config, micro_batch(length), kObservedOptions).tape_bytes;
  const double weights = real_size(config) * training.parameters;
  const double moments = config.train.optimizer.name == OptimizerKind::sgd ? 1 : 2;
  const auto threads = static_cast<double>(threads_of(config));
  // A rank has whole gradients of its shards, and of the others its share, if it gets them one by one.
  const auto shards = static_cast<double>(config.train.shards);
  const double own = std::ceil(shards / ranks);
  constexpr double kSums = 40;  // bytes of an evaluation per micro-batch
  return {.program = program_memory(threads),
          .parameters = models * (weights + training.packed_bytes),
          .gradients = (own + (shards - own) / ranks) * weights,
          .optimizer = moments * weights,
          .activations = threads * tapes,
          .checkpoint = (1 + moments) * weights,
          .other = kSums * static_cast<double>(evaluated) / static_cast<double>(micro_batch(length))};
}

constexpr double kInspected = 1000;  // sequences

// Returns the bytes of the scores of heads, with those of varied examples and of the model before training: sums
// of the weights, counts of target cells by length of the sequences, and the target cells of a micro-batch, with
// every key as a candidate.
double score_memory(const Config& config, std::int64_t at_once) {
  constexpr double kScorers = 3, kCounts = 2, kTokenScores = 3, kCellBytes = 16, kCandidateBytes = 24;
  const TaskConfig& c = config.task;
  const Task& task = checked_task(c);
  const double targets = task.kinds.size() > 1 ? 1 + static_cast<double>(task.kinds.size()) : 1;
  const double lengths = c.min_length > 0 ? static_cast<double>(c.length - c.min_length + 1) : 1;
  const double shortest =
      c.min_length > 0 ? static_cast<double>(c.min_length) / static_cast<double>(c.length) : 1;
  const double counts = kCounts * sizeof(std::uint32_t) * (kTokenScores + targets) *
                        std::min(lengths, kInspected) * (1 + shortest + shortest * shortest) / 3;
  const double cells = kScorers * static_cast<double>(at_once) *
                       (kTokenScores * kCellBytes / static_cast<double>(c.symbols) +
                        (task.candidates != nullptr ? targets * kCandidateBytes : 0));
  const double sums =
      sizeof(double) * (kScorers + 1) * static_cast<double>(config.model.heads);  // and the mean
  const ModelSizes sizes = model_sizes(config);
  std::set<std::pair<bool, bool>> kinds;  // of queries and keys, which have targets of their own
  double bytes = 0;
  for (const AttentionLayer& layer : attention_layers(config.model)) {
    const bool is_new = kinds.insert({layer.queries_source, layer.keys_source}).second;
    const auto queries = static_cast<double>(layer.queries_source ? sizes.source_length : sizes.length),
               keys = static_cast<double>(layer.keys_source ? sizes.source_length : sizes.length);
    bytes += queries * keys * (sums + (is_new ? counts + cells : 0));
  }
  return bytes;
}

MemoryEstimate inspection_memory(const Config& config) {
  const ModelSizes sizes = model_sizes(config);
  const std::int64_t at_once = micro_batch(tokens_of(config));
  const ModelPlan pass = plan_of(config, at_once, kObservedOptions);
  constexpr PlanOptions kGradients{.gradients = true, .dropout = true, .observed = true};
  const double tapes = pass.tape_bytes + plan_of(config, at_once, kGradients).tape_bytes;
  const double weights = real_size(config) * pass.parameters;
  const auto longest = static_cast<double>(std::max(sizes.length, sizes.source_length));
  const auto heads = static_cast<double>(config.model.heads);
  const auto threads = static_cast<double>(threads_of(config));
  // Of every sequence, inspection stores first the inputs of a layer, those of a decoder layer being two, and the
  // outputs of its heads, then the inputs of all layers, and then scores. For recurrent models it stores no inputs.
  const double inputs = config.model.kind == ModelKind::encoder           ? 1
                        : config.model.kind == ModelKind::encoder_decoder ? 2
                                                                          : 0;
  const double inputs_width = inputs * static_cast<double>(config.model.d_model),
               outputs_width = heads * static_cast<double>(config.model.attention_sizes().d_value);
  const double stored =
      real_size(config) * kInspected * longest *
      std::max(inputs_width + outputs_width, static_cast<double>(config.model.layers) * inputs_width);
  return {.program = program_memory(threads),
          .parameters = weights + pass.packed_bytes,
          .gradients = threads * weights,
          .activations = threads * tapes + std::max(stored, score_memory(config, at_once)),
          .checkpoint = weights};
}

MemoryEstimate check_memory(Config config) {
  config.train.precision = Precision::float64;
  // Of two tapes, both apply dropout, and one has no gradients.
  const auto pass = [&](bool gradients) {
    return plan_of(config, kModelCheckSequences, {.gradients = gradients, .dropout = true});
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
  if (largest->first == "other") return "data.validation or data.test";
  return "model.d_model, model.d_ff, model.layers or task.symbols";
}

// Returns the message for a limit on address space, which also counts reserved memory.
std::string address_space_message(const MemoryEstimate& memory, const MemoryLimit& limit,
                                  std::int64_t threads) {
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
  ModelPlan plan = plan_of(config, sequences, kTrainingOptions);
  StepCost cost{.parameters = plan.parameters, .sequences = sequences, .ops = std::move(plan.ops)};
  const double micro_batches = static_cast<double>(config.train.batch) / static_cast<double>(sequences);
  for (OpCost& op : cost.ops) {
    op.flops = {micro_batches * op.flops.forward, micro_batches * op.flops.backward};
    cost.flops += op.flops.total();
  }
  return cost;
}

MemoryEstimate estimate_memory(Job job, const Config& config, int ranks) {
  switch (job) {
    case Job::training:
      return training_memory(config, ranks);
    case Job::inspection:
      return inspection_memory(config);
    case Job::model_check:
      break;
  }
  return check_memory(config);
}

std::string describe(const MemoryEstimate& memory) {
  std::string lines;
  for (const auto& [name, bytes] : memory.parts())
    if (bytes > 0) lines += fmt::format("  {:<14} {:>10}\n", name, format_bytes(bytes));
  return lines;
}

void require_memory(Job job, const Config& config, const MemoryLimit& limit, int ranks) {
  const MemoryEstimate memory = estimate_memory(job, config, ranks);
  if (memory.total() <= limit.available) return;
  const std::string needed = format_bytes(memory.total()), left = format_bytes(limit.available);
  if (limit.kind == MemoryLimit::address_space)
    throw ConfigError(address_space_message(memory, limit, job == Job::model_check ? 1 : threads_of(config)));
  throw ConfigError(fmt::format(
      "this config needs about {} of memory, but only {} is {}:\n{}lower {}", needed, left,
      limit.kind == MemoryLimit::control_group ? "left by the limit of its control group" : "free",
      describe(memory), remedy(memory)));
}

void require_memory(Job job, const Config& config, int ranks) {
  require_memory(job, config, available_memory(job == Job::model_check ? 1 : threads_of(config)), ranks);
}

Json cost_json(const Config& config) {
  const StepCost step = step_cost(config);
  const MemoryEstimate memory = estimate_memory(Job::training, config);
  Json bytes{{"total", memory.total()}}, ops = Json::array();
  for (const auto& [name, part] : memory.parts()) bytes[std::string(name)] = part;
  for (const OpCost& op : step.ops)
    ops.push_back({{"layer", op.layer},
                   {"op", op.op},
                   {"calls", op.calls},
                   {"bytes", op.bytes},
                   {"forward_flops", op.flops.forward},
                   {"backward_flops", op.flops.backward}});
  return {{"parameters", static_cast<std::int64_t>(step.parameters)},
          {"flops_per_step", step.flops},
          {"memory_bytes", bytes},
          {"micro_batch", step.sequences},
          {"ops", ops}};
}

}  // namespace thimble
