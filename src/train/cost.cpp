#include "thimble/train/cost.h"

#include <algorithm>

#include "thimble/core/error.h"
#include "thimble/core/json.h"
#include "thimble/core/memory.h"
#include "thimble/core/thread_pool.h"
#include "thimble/kernels/linear.h"
#include "thimble/model/attention_layer.h"

namespace thimble {

namespace {

// Activations of this many tokens stay in a core's cache; measured on configs/bench.
constexpr std::int64_t kMicroBatchTokens = 512;

std::int64_t length_of(const Config& config) { return model_length(config.task, layout_of(config.model)); }

ModelSizes sizes_of(const Config& config) {
  const Layout layout = layout_of(config.model);
  return {std::ssize(token_names(config.task, layout)), length_of(config),
          source_length(config.task, layout)};
}

// Of a sequence and its source.
std::int64_t tokens_of(const Config& config) {
  return length_of(config) + source_length(config.task, layout_of(config.model));
}

std::int64_t threads_of(const Config& config) {
  return config.train.threads > 0 ? config.train.threads : usable_cores();
}

double activations(const Config& config, std::int64_t sequences, bool training) {
  return activation_count(config.model, sizes_of(config), sequences, training);
}

// What the program has in memory before it computes, and what each thread that computes adds: its stack, its
// heap, and what products of this model need of OpenBLAS's buffer; measured on Debian 12.
double program_memory(double threads) {
  constexpr double kProgram = 9.75 * (1 << 20), kThread = 0.25 * (1 << 20);
  return kProgram + kThread * threads;
}

// Of parameters and of their transposes, where kernels read them.
double copies_of_parameters() { return kernels::wants_transposed() ? 2 : 1; }

// The most sequences that an evaluation at or before the end of training computes at once; 0: there is none.
std::int64_t evaluated_at_once(const Config& config) {
  return std::min(micro_batch(tokens_of(config)), std::max(config.data.validation, config.data.test));
}

MemoryEstimate training_memory(const Config& config, double real) {
  const double weights = real * parameter_count(config);
  const std::int64_t length = tokens_of(config);
  const double moments = config.train.optimizer.name == OptimizerKind::sgd ? 1 : 2;
  const auto threads = static_cast<double>(threads_of(config));
  const double tapes = activations(config, largest_micro_batch(config.train, length), true) +
                       activations(config, evaluated_at_once(config), false) +
                       decoding_count(config.model, sizes_of(config), evaluated_at_once(config));
  constexpr double kSums = 40;  // bytes that an evaluation keeps of a micro-batch
  const auto evaluated = static_cast<double>(std::max(config.data.validation, config.data.test));
  // The watch has a model of its own, and tapes.
  const double watch = config.train.watch_heads ? 1 : 0;
  return {.program = program_memory(threads),
          .parameters = (1 + watch) * copies_of_parameters() * weights,
          .gradients = static_cast<double>(config.train.shards) * weights,
          .optimizer = moments * weights,
          .activations = threads * real * (tapes + watch * activations(config, micro_batch(length), false)),
          .checkpoint = (1 + moments) * weights,
          .other = kSums * evaluated / static_cast<double>(micro_batch(length))};
}

MemoryEstimate inspection_memory(const Config& config, double real) {
  const double weights = real * parameter_count(config);
  const std::int64_t source = source_length(config.task, layout_of(config.model));
  const auto longest = static_cast<double>(std::max(length_of(config), source));
  const auto attentions = static_cast<double>(attention_layers(config.model).size());
  const auto heads = static_cast<double>(config.model.heads);
  const auto threads = static_cast<double>(threads_of(config));
  const std::int64_t at_once = micro_batch(tokens_of(config));
  const double tapes = activations(config, at_once, true) + activations(config, at_once, false);
  // For each sequence what a layer takes, which a decoder's takes from the encoder too, and what its heads
  // hand on; and mean weights. Passes of recurrent models start at the beginning.
  constexpr double kSequences = 1000;
  const double inputs = config.model.kind == ModelKind::encoder           ? 1
                        : config.model.kind == ModelKind::encoder_decoder ? 2
                                                                          : 0;
  const double inputs_width = inputs * static_cast<double>(config.model.d_model),
               outputs_width = heads * static_cast<double>(config.model.d_value());
  const double outputs = real * kSequences * longest * (inputs_width + outputs_width);
  return {.program = program_memory(threads),
          .parameters = copies_of_parameters() * weights,
          .gradients = threads * weights,
          .activations =
              threads * real * tapes + outputs + sizeof(double) * attentions * heads * longest * longest,
          .checkpoint = weights};
}

MemoryEstimate check_memory(const Config& config) {
  const double weights = sizeof(double) * parameter_count(config);
  // Each of its two tapes makes transposes of its own. Both run with dropout, one of them without gradients.
  return {.program = program_memory(1),
          .parameters = (2 * copies_of_parameters() - 1) * weights,
          .gradients = weights,
          .activations = 2 * sizeof(double) * activations(config, kModelCheckSequences, true)};
}

// The keys that the largest part grows with.
std::string_view remedy(const MemoryEstimate& memory) {
  const auto parts = memory.parts();
  const auto largest = std::ranges::max_element(parts, {}, [](const auto& part) { return part.second; });
  if (largest->first == "activations")
    return "task.length, train.threads, model.layers, model.heads or model.d_model";
  if (largest->first == "gradients") return "train.shards, model.d_model, model.d_ff or model.layers";
  if (largest->first == "other") return "data.validation or data.test";
  return "model.d_model, model.d_ff, model.layers or task.symbols";
}

// A limit on address space counts what is reserved, too.
std::string address_space_message(const MemoryEstimate& memory, const MemoryLimit& limit,
                                  std::int64_t threads) {
  const double reserved = limit.reserved * static_cast<double>(threads);
  const auto enough = static_cast<std::int64_t>((limit.taken + reserved + memory.total()) / 1024) + 1;
  return fmt::format(
      "this config needs about {} of memory, {} are left under the limit on\n"
      "address space (ulimit -v): of its {}, the program has taken {}, and {} thread{}\n"
      "will reserve {}{} for stacks and buffers, most of which is never used:\n"
      "{}set ulimit -v to {} or more{}, or lower {}",
      format_bytes(memory.total()), format_bytes(limit.available), format_bytes(limit.limit),
      format_bytes(limit.taken), threads, threads == 1 ? "" : "s", format_bytes(limit.reserved),
      threads == 1 ? "" : " each", describe(memory), enough, threads == 1 ? "" : ", set train.threads=1",
      remedy(memory));
}

}  // namespace

std::int64_t micro_batch(std::int64_t length) {
  return std::max<std::int64_t>(1, kMicroBatchTokens / length);
}

std::int64_t largest_micro_batch(const TrainConfig& train, std::int64_t length) {
  const std::int64_t largest_shard = (train.batch + train.shards - 1) / train.shards;
  return std::min(micro_batch(length), largest_shard);
}

double parameter_count(const Config& config) { return parameter_count(config.model, sizes_of(config)); }

Flops step_flops(const Config& config) {
  return training_flops(config.model, sizes_of(config), config.train.batch);
}

MemoryEstimate estimate_memory(Job job, const Config& config) {
  const double real = config.train.precision == Precision::float64 ? sizeof(double) : sizeof(float);
  switch (job) {
    case Job::training:
      return training_memory(config, real);
    case Job::inspection:
      return inspection_memory(config, real);
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

void require_memory(Job job, const Config& config, const MemoryLimit& limit) {
  const MemoryEstimate memory = estimate_memory(job, config);
  if (memory.total() <= limit.available) return;
  const std::string needed = format_bytes(memory.total()), left = format_bytes(limit.available);
  if (limit.kind == MemoryLimit::address_space)
    throw ConfigError(address_space_message(memory, limit, job == Job::model_check ? 1 : threads_of(config)));
  throw ConfigError(fmt::format(
      "this config needs about {} of memory, {} are {}:\n{}lower {}", needed, left,
      limit.kind == MemoryLimit::control_group ? "left by the limit of its control group" : "free",
      describe(memory), remedy(memory)));
}

void require_memory(Job job, const Config& config) {
  require_memory(job, config, available_memory(job == Job::model_check ? 1 : threads_of(config)));
}

std::string format_bytes(double bytes) {
  constexpr std::array<std::string_view, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

Json cost_json(const Config& config) {
  const Flops flops = step_flops(config);
  const MemoryEstimate memory = estimate_memory(Job::training, config);
  Json bytes{{"total", memory.total()}};
  for (const auto& [name, part] : memory.parts()) bytes[std::string(name)] = part;
  return {{"parameters", static_cast<std::int64_t>(parameter_count(config))},
          {"flops_per_step",
           {{"total", flops.total()},
            {"projections", flops.projections},
            {"attention", flops.attention},
            {"feed_forward", flops.feed_forward},
            {"output", flops.output},
            {"recurrent", flops.recurrent}}},
          {"memory_bytes", bytes}};
}

}  // namespace thimble
