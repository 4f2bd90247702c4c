#include "train/step/cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "thimble/engine/attention_layer.h"
#include "thimble/engine/error.h"
#include "thimble/train/generation.h"
#include "thimble/train/json.h"
#include "train/config/with_precision.h"
#include "train/files/text/format.h"
#include "train/files/thread_pool.h"
#include "train/step/eval_sums.h"
#include "train/step/micro_batch.h"
#include "train/step/plan.h"
#include "train/step/step_batches.h"

namespace thimble {

namespace {

// Returns the bytes of the program before it computes, plus those of each thread: stack, heap, and the used
// part of OpenBLAS's buffer; measured on Debian 12 and 13, which takes 1 MiB more.
double program_memory(std::int64_t threads) {
  constexpr double kProgram = 10.75 * (1 << 20), kThread = 0.25 * (1 << 20);
  return kProgram + kThread * static_cast<double>(threads);
}

double moments_of(const Config& config) { return config.train.optimizer.name == OptimizerKind::sgd ? 1 : 2; }

double real_size(const Config& config) {
  return config.train.precision == Precision::float64 ? sizeof(double) : sizeof(float);
}

std::int64_t tokens_of(const OpenConfig& config) {
  const ModelSizes sizes = model_sizes(config);
  return sizes.length + sizes.source_length;
}

std::int64_t threads_of(const Config& config) {
  return config.train.threads > 0 ? config.train.threads : usable_cores();
}

// The tapes of a thread that evaluates a split, and the sums of all its micro-batches.
struct Evaluation {
  double tapes = 0, sums = 0;
};

Evaluation evaluation_of(const OpenConfig& config, std::int64_t sequences) {
  const std::int64_t at_once = micro_batch(tokens_of(config)), largest = std::min(at_once, sequences);
  if (sequences == 0) return {};
  const ModelPlan decoding = layout_of(config.model) == Layout::seq2seq
                                 ? plan_pass(config, largest, PlannedPass::decoding)
                                 : ModelPlan{};
  constexpr double kSmallBlocks = 0.5 * (1 << 20);  // that decoding leaves in the heap of a thread
  return {
      .tapes = decoding.tape_bytes + decoding.other_bytes + (decoding.other_bytes > 0 ? kSmallBlocks : 0) +
               plan_pass(config, largest, PlannedPass::inference).tape_bytes,
      .sums = sizeof(EvalSums) * std::ceil(static_cast<double>(sequences) / static_cast<double>(at_once))};
}

// Returns the keys that determine the largest part but the program, the first.
std::string_view remedy(const MemoryEstimate& memory) {
  const auto parts = memory.parts();
  const auto largest = std::max_element(parts.begin() + 1, parts.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  if (largest->first == "activations")
    return "task.length, train.threads, model.layers, model.heads or model.d_model";
  if (largest->first == "gradients") return "train.shards, model.d_model, model.d_ff or model.layers";
  if (largest->first == "sums") return "data.validation or data.test";
  return "model.d_model, model.d_ff, model.layers or task.symbols";
}

// Returns the micro-batches of the first kCountedSteps steps, those that cost the same once, and how many a step has of each.
std::vector<std::pair<Batch, double>> first_batches(const OpenConfig& config) {
  const Dataset dataset = make_dataset(config);
  StepBatches batches(dataset, config.train);
  using Sizes = std::array<std::int64_t, 4>;
  std::map<Sizes, std::pair<Batch, double>> found;
  for (std::int64_t step = 0; step < kCountedSteps; ++step) {
    batches.start(step);
    for (std::int64_t shard = 0; shard < config.train.shards; ++shard)
      for (const MicroBatch& part : batches.of_shard(shard)) {
        Batch batch;
        batches.fill(part, batch);
        const Sizes sizes{batch.sequences, batch.length, batch.source_length, std::ssize(batch.rows)};
        const auto [entry, is_new] = found.try_emplace(sizes);
        if (is_new) entry->second.first = std::move(batch);
        entry->second.second += 1.0 / kCountedSteps;
      }
  }
  std::vector<std::pair<Batch, double>> all;
  for (auto& [sizes, entry] : found) all.push_back(std::move(entry));
  return all;
}

}  // namespace

Batch full_batch(const OpenConfig& config, std::int64_t sequences) {
  const ModelSizes sizes = model_sizes(config);
  return full_batch(config, sequences, {sizes.length, sizes.source_length});
}

Batch full_batch(const OpenConfig& config, std::int64_t sequences, const RowLengths& sizes) {
  const std::int64_t labels = config.model.output.per == OutputPer::sequence ? 1 : sizes.length;
  const auto size = [&](std::int64_t of_each) { return static_cast<std::size_t>(sequences * of_each); };
  Batch batch;
  batch.sequences = sequences;
  batch.length = sizes.length;
  batch.tokens.resize(size(sizes.length));
  batch.lengths.assign(size(1), static_cast<std::int32_t>(sizes.length));
  batch.source_length = sizes.source;
  batch.sources.resize(size(sizes.source));
  if (sizes.source > 0) batch.source_lengths.assign(size(1), static_cast<std::int32_t>(sizes.source));
  for (std::vector<std::int32_t>* each : {&batch.labels, &batch.rows, &batch.row_labels})
    each->resize(size(labels));
  return batch;
}

Batch largest_training_batch(const OpenConfig& config) {
  const ModelSizes sizes = model_sizes(config);
  const RowLengths longest{sizes.length, sizes.source_length};
  if (source_of(config)->step_order() != StepOrder::dealt)
    return full_batch(config, largest_micro_batch(config.train, longest.total()));
  Batch largest;
  double most = 0;
  const auto compare = [&](std::int64_t count, const RowLengths& lengths) {
    Batch batch = full_batch(config, count, lengths);
    const double bytes = plan_model(config, batch, PlannedPass::training).tape_bytes;
    if (bytes <= most) return;
    most = bytes;
    largest = std::move(batch);
  };
  const std::int64_t least = longest.source > 0 ? 1 : 0, of_longest = micro_batch(longest.total());
  std::int64_t count = std::min(largest_shard(config.train), micro_batch(1 + least));
  compare(std::min(count, of_longest), longest);
  // Of as many rows, the longest that fit: with a long sequence, or with a long source.
  while (count > of_longest) {
    const std::int64_t tokens = kMicroBatchTokens / count, length = std::min(longest.length, tokens - least),
                       source = std::min(longest.source, tokens - 1);
    compare(count, {length, std::min(longest.source, tokens - length)});
    if (least > 0) compare(count, {std::min(longest.length, tokens - source), source});
    count = kMicroBatchTokens / (tokens + 1);  // the most rows of one token more
  }
  return largest;
}

StepCost step_cost(const OpenConfig& config) {
  const std::int64_t sequences = largest_micro_batch(config.train, tokens_of(config));
  ModelPlan plan = plan_pass(config, sequences, PlannedPass::training);
  StepCost cost{.parameters = plan.parameters, .sequences = sequences, .ops = std::move(plan.ops)};
  for (OpCost& op : cost.ops) op.flops = {}, op.traffic = 0;
  for (const auto& [batch, share] : first_batches(config)) {
    const std::vector<OpCost> ops = plan_model(config, batch, PlannedPass::training).ops;
    for (OpCost& op : cost.ops) {
      const auto found = std::ranges::find_if(
          ops, [&](const OpCost& other) { return other.layer == op.layer && other.op == op.op; });
      if (found == ops.end()) continue;
      op.flops.forward += share * found->flops.forward;
      op.flops.backward += share * found->flops.backward;
      op.traffic += share * found->traffic;
    }
  }
  for (const OpCost& op : cost.ops) cost.flops += op.flops.total();
  return cost;
}

double MemoryEstimate::total() const {
  double sum = 0;
  for (const auto& [name, bytes] : parts()) sum += bytes;
  return sum;
}

MemoryEstimate training_memory(const OpenConfig& config, int ranks) {
  const std::int64_t length = tokens_of(config), threads = threads_of(config);
  const ModelPlan training = plan_model(config, largest_training_batch(config), PlannedPass::training);
  const DataConfig sizes = split_sizes(config);
  const Evaluation evaluation = evaluation_of(config, std::max(sizes.validation, sizes.test));
  double tapes = training.tape_bytes + evaluation.tapes;
  // Logging heads takes another model with its tapes.
  const double models = config.train.log_heads ? 2 : 1;
  if (config.train.log_heads)
    tapes += plan_pass(config, micro_batch(length), PlannedPass::observed).tape_bytes;
  double samples = 0;
  if (config.train.sample_every > 0) {
    const ModelPlan drawn = plan_pass(config, kSampledDocuments, PlannedPass::decoding);
    samples = drawn.tape_bytes + drawn.other_bytes;
  }
  const double weights = real_size(config) * training.parameters, moments = moments_of(config);
  // A rank has whole gradients of its shards, and of the others its share, if it gets them one by one.
  const auto shards = static_cast<double>(config.train.shards);
  const double own = std::ceil(shards / ranks);
  return {.program = program_memory(threads),
          .parameters = models * (weights + training.packed_bytes),
          .gradients = (own + (shards - own) / ranks) * weights,
          .optimizer = moments * weights,
          .activations = static_cast<double>(threads) * tapes + samples,
          .checkpoint = (1 + moments) * weights,
          .sums = evaluation.sums};
}

MemoryEstimate model_check_memory(OpenConfig config) {
  config.train.precision = Precision::float64;
  const ModelPlan backward = plan_pass(config, kModelCheckSequences, PlannedPass::training),
                  forward = plan_pass(config, kModelCheckSequences, PlannedPass::inference);
  const double weights = sizeof(double) * backward.parameters;
  return {.program = program_memory(1),
          .parameters = weights,
          .gradients = weights,
          .activations = backward.tape_bytes + forward.tape_bytes};
}

ModelPlan plan_model(const OpenConfig& config, const Batch& batch, PlannedPass pass) {
  return with_precision(config, [&]<class R>() { return run_plan<R>(config, batch, pass); });
}

ModelPlan plan_pass(const OpenConfig& config, std::int64_t sequences, PlannedPass pass) {
  return plan_model(config, full_batch(config, sequences), pass);
}

std::string describe(const MemoryEstimate& memory) {
  std::string lines;
  for (const auto& [name, bytes] : memory.parts())
    if (bytes > 0) lines += fmt::format("  {:<14} {:>10}\n", name, format_bytes(bytes));
  return lines;
}

void require_fit(const MemoryEstimate& memory, double available) {
  require<ConfigError>(
      memory.total() <= available, "this config needs about {} of memory, but only {} is left:\n{}lower {}",
      format_bytes(memory.total()), format_bytes(available), describe(memory), remedy(memory));
}

void require_attention_fits(const OpenConfig& config, std::int64_t sequences, std::int64_t models,
                            double available) {
  const ModelSizes sizes = model_sizes(config);
  double kept = 0;
  for (const AttentionLayer& layer : attention_layers(config.model))
    kept += static_cast<double>(layer.heads * (layer.queries_source ? sizes.source_length : sizes.length) *
                                (layer.keys_source ? sizes.source_length : sizes.length));
  kept *= sizeof(double) * static_cast<double>(sequences * models);
  require<ConfigError>(
      kept <= available,
      "the attention weights of {} take {} of memory, but only {} is left; lower their number "
      "with --sequences or --examples",
      counted(sequences, "sequence"), format_bytes(kept), format_bytes(available));
}

Json to_json(const MemoryEstimate& memory) {
  Json bytes{{"total", memory.total()}};
  for (const auto& [name, part] : memory.parts()) bytes[std::string(name)] = part;
  return bytes;
}

Json cost_json(const OpenConfig& config) {
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
          {"memory_bytes", to_json(training_memory(config))},
          {"micro_batch", step.sequences},
          {"ops", ops}};
}

}  // namespace thimble
