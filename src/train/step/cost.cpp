#include "train/step/cost.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "thimble/engine/attention_layer.h"
#include "thimble/engine/error.h"
#include "thimble/train/generation.h"
#include "thimble/train/json.h"
#include "thimble/train/prediction.h"
#include "train/config/with_precision.h"
#include "train/files/text/format.h"
#include "train/files/thread_pool.h"
#include "train/step/eval_sums.h"
#include "train/step/plan.h"
#include "train/step/references.h"

namespace thimble {

namespace {

// With this many tokens the activations of one block of a small model fit a core's cache: of 128, 256 and 512,
// configs/bench/tiny.yaml is a sixth faster with 256 than with 512, and larger models are 1 % slower.
constexpr std::int64_t kMicroBatchTokens = 256;

constexpr PlanOptions kTrainingOptions{.gradients = true, .dropout = true};

// Returns the bytes of the program before it computes, plus those of each thread: stack, heap, and the used
// part of OpenBLAS's buffer; measured on Debian 12 and 13, which takes 1 MiB more.
double program_memory(std::int64_t threads) {
  constexpr double kProgram = 10.75 * (1 << 20), kThread = 0.25 * (1 << 20);
  return kProgram + kThread * static_cast<double>(threads);
}

double moments_of(const Config& config) { return config.train.optimizer.name == OptimizerKind::sgd ? 1 : 2; }

// Returns the bytes of the vocabulary, in the dataset and in a report, and of data files.
double data_memory(const OpenConfig& config) {
  constexpr double kCopies = 2, kNode = 96;  // of a map of tokens, which reading leaves in the heap
  const auto vocabulary = static_cast<double>(model_sizes(config).vocabulary);
  return kCopies * sizeof(std::string) * vocabulary +
         (config.source != nullptr ? config.source->bytes() + kNode * vocabulary : 0);
}

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

// Returns the attention weights of a sequence of the maximum length, in all layers and heads.
double attention_weights(const OpenConfig& config) {
  const ModelSizes sizes = model_sizes(config);
  double weights = 0;
  for (const AttentionLayer& layer : attention_layers(config.model))
    weights += static_cast<double>(layer.heads * (layer.queries_source ? sizes.source_length : sizes.length) *
                                   (layer.keys_source ? sizes.source_length : sizes.length));
  return weights;
}

// The tapes of a thread that evaluates a split, and the sums of all its micro-batches.
struct Evaluation {
  double tapes = 0, sums = 0;
};

Evaluation evaluation_of(const OpenConfig& config, std::int64_t sequences) {
  const std::int64_t at_once = micro_batch(tokens_of(config)), largest = std::min(at_once, sequences);
  if (sequences == 0) return {};
  const ModelPlan decoding = layout_of(config.model) == Layout::seq2seq
                                 ? plan_pass(config, largest, {.decoding = true})
                                 : ModelPlan{};
  constexpr double kSmallBlocks = 0.5 * (1 << 20);  // that decoding leaves in the heap of a thread
  return {
      .tapes = decoding.tape_bytes + decoding.other_bytes + (decoding.other_bytes > 0 ? kSmallBlocks : 0) +
               plan_pass(config, largest, {}).tape_bytes,
      .sums = sizeof(EvalSums) * std::ceil(static_cast<double>(sequences) / static_cast<double>(at_once))};
}

// Returns the memory of a model that is read from a checkpoint.
MemoryEstimate reading_memory(const OpenConfig& config) {
  constexpr double kCode = 1.5 * (1 << 20);  // of inspection, and small blocks
  const ModelPlan plan = plan_pass(config, 1, {});
  const double weights = real_size(config) * plan.parameters;
  return {.threads = threads_of(config),
          .program = program_memory(threads_of(config)) + kCode,
          .data = data_memory(config),
          .parameters = weights + plan.packed_bytes,
          .checkpoint = (1 + moments_of(config)) * weights};
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
    const double bytes = plan_model(config, batch, kTrainingOptions).tape_bytes;
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

MemoryEstimate training_memory(const OpenConfig& config, int ranks) {
  const std::int64_t length = tokens_of(config), threads = threads_of(config);
  const ModelPlan training = plan_model(config, largest_training_batch(config), kTrainingOptions);
  const DataConfig sizes = split_sizes(config);
  const Evaluation evaluation = evaluation_of(config, std::max(sizes.validation, sizes.test));
  double tapes = training.tape_bytes + evaluation.tapes;
  // Logging heads takes another model with its tapes.
  const double models = config.train.log_heads ? 2 : 1;
  if (config.train.log_heads) tapes += plan_pass(config, micro_batch(length), {.observed = true}).tape_bytes;
  double samples = 0;
  if (config.train.sample_every > 0) {
    const ModelPlan drawn = plan_pass(config, kSampledDocuments, {.decoding = true});
    samples = drawn.tape_bytes + drawn.other_bytes;
  }
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
          .activations = static_cast<double>(threads) * tapes + samples,
          .checkpoint = (1 + moments) * weights,
          .sums = std::max(evaluation.sums, ReferenceModels::bytes(config))};
}

MemoryEstimate model_check_memory(OpenConfig config) {
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

MemoryEstimate evaluation_bound(const OpenConfig& config, std::int64_t sequences, bool predictions) {
  const Evaluation evaluation = evaluation_of(config, sequences);
  MemoryEstimate bound = reading_memory(config);
  bound.activations = static_cast<double>(bound.threads) * evaluation.tapes;
  bound.sums = evaluation.sums + ReferenceModels::bytes(config);
  // Input, target and answer, as numbers and then as text, whose tokens have about as many bytes as a number.
  constexpr double kRow = sizeof(Prediction) + 128, kToken = 3 * 2 * sizeof(std::int32_t);
  if (predictions)
    bound.sequences =
        static_cast<double>(sequences) * (kRow + kToken * static_cast<double>(tokens_of(config)));
  return bound;
}

MemoryEstimate tracing_bound(const OpenConfig& config, std::int64_t kept, std::int64_t outputs) {
  MemoryEstimate bound = reading_memory(config);
  const std::int64_t at_once = std::clamp<std::int64_t>(kept, 1, micro_batch(tokens_of(config)));
  bound.activations = plan_pass(config, at_once, {.observed = true, .loss = false}).tape_bytes;
  if (generates(config)) {
    const ModelPlan decoding = plan_pass(config, outputs, {.decoding = true});
    bound.activations += decoding.tape_bytes + decoding.other_bytes;
  }
  bound.sequences = sizeof(double) * static_cast<double>(kept + at_once) * attention_weights(config);
  return bound;
}

MemoryEstimate inspection_bound(const OpenConfig& config, std::int64_t sequences, std::int64_t examples,
                                ReportOutput output) {
  MemoryEstimate bound = reading_memory(config);
  if (sequences == 0 || attention_layers(config.model).empty()) return bound;
  const std::int64_t tokens = tokens_of(config), at_once = std::min(micro_batch(tokens), sequences);
  const auto count = static_cast<double>(sequences);
  const ModelSizes sizes = model_sizes(config);
  const auto vocabulary = static_cast<double>(sizes.vocabulary),
             d_model = static_cast<double>(config.model.d_model);
  const auto pass = [&](const PlanOptions& options) {
    return plan_pass(config, at_once, options).tape_bytes;
  };
  bound.gradients =
      static_cast<double>(bound.threads) * real_size(config) * plan_pass(config, 1, {}).parameters;
  bound.activations = static_cast<double>(bound.threads) *
                      (pass({.observed = true, .replaced = true, .per_sequence = true}) +
                       pass({.gradients = true, .observed = true, .per_sequence = true, .all = true}));

  // Of each sequence: its tokens and results, the inputs of blocks and the outputs of a layer's heads.
  double heads = 0, outputs = 0, width = 0;
  std::set<std::int64_t> blocks;
  for (const AttentionLayer& layer : attention_layers(config.model)) {
    const auto of_layer = static_cast<double>(layer.heads * layer.d_value);
    heads += static_cast<double>(layer.heads);
    outputs += of_layer;
    width = std::max(width, of_layer);
    blocks.insert(layer.block);
  }
  constexpr double kResults = 2 * sizeof(SequenceResult) + 8 * sizeof(std::int32_t);
  const double of_sequence =
      static_cast<double>(tokens) *
      (kResults + real_size(config) * (static_cast<double>(blocks.size()) * d_model + width));
  // Of all: results of pairs of heads, sums of weights by cell, counts of tokens by head, projections of the vocabulary, and
  // the map from token to token of each head where the vocabulary is small.
  constexpr double kPairSequences = 100, kSums = 16, kNode = 128, kMapVocabulary = 64;
  const double pairs = std::min(count, kPairSequences) * sizeof(SequenceResult) * heads * (heads + 1) / 2;
  const double cells = attention_weights(config);
  const double maps =
      vocabulary * (5 * d_model + outputs + (vocabulary <= kMapVocabulary ? 2 * heads * vocabulary : 0));
  const double counts = kNode * (heads + 2) * std::min(vocabulary, count * static_cast<double>(tokens));
  // A report has the weights of examples and means. A number of JSON is a value, and then text, twice.
  constexpr double kMeans = 3, kValue = 2 * sizeof(Json), kText = 72;
  const double numbers = (static_cast<double>(std::min(examples, sequences)) + kMeans) * cells;
  bound.sequences = count * of_sequence + pairs + sizeof(double) * (kSums * cells + maps) + counts +
                    numbers * (sizeof(double) + (output == ReportOutput::none ? 0 : kValue) +
                               (output == ReportOutput::json ? kText : 0));
  return bound;
}

ModelPlan plan_model(const OpenConfig& config, const Batch& batch, const PlanOptions& options) {
  return with_precision(config, [&]<class R>() { return run_plan<R>(config, batch, options); });
}

ModelPlan plan_pass(const OpenConfig& config, std::int64_t sequences, const PlanOptions& options) {
  return plan_model(config, full_batch(config, sequences), options);
}

std::string describe(const MemoryEstimate& memory) {
  std::string lines;
  for (const auto& [name, bytes] : memory.parts())
    if (bytes > 0) lines += fmt::format("  {:<14} {:>10}\n", name, format_bytes(bytes));
  return lines;
}

std::string memory_shortage(const MemoryEstimate& memory, double available, bool is_bound) {
  if (memory.total() <= (is_bound ? 2 : 1) * available) return "";
  return fmt::format("this {} {} of memory, but only {} is left:\n{}lower {}",
                     is_bound ? "may need up to" : "config needs about", format_bytes(memory.total()),
                     format_bytes(available), describe(memory), remedy(memory));
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
