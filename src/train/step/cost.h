// Estimates parameters, arithmetic and memory of a config before anything is allocated.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thimble/engine/op_cost.h"
#include "thimble/train/config.h"
#include "thimble/train/json.h"

namespace thimble {

// Returns how many sequences of `length` tokens a thread computes at once: as many as fit a core's cache, at
// least 1.
std::int64_t micro_batch(std::int64_t length);

// Returns the number of micro-batches of a shard in training: the fewest of at most micro_batch(length) sequences.
std::int64_t micro_batches_of_shard(const TrainConfig&, std::int64_t length);

// Returns the sequences of the largest micro-batch of training, as those of a shard are as even as possible.
std::int64_t largest_micro_batch(const TrainConfig&, std::int64_t length);

// Returns a micro-batch of training of a shape that takes the most memory, with a label at every position.
Batch largest_training_batch(const OpenConfig&);

// The sequences of a model check.
inline constexpr std::int64_t kModelCheckSequences = 3;

// The cost of a training step.
struct StepCost {
  double parameters = 0;       // elements of all parameters
  double flops = 0;            // FLOPs of all ops
  std::int64_t sequences = 0;  // in the largest micro-batch
  std::vector<OpCost> ops;     // FLOPs of the whole step; bytes and calls of a micro-batch
};
StepCost step_cost(const OpenConfig&);

// An estimate of memory by part, in bytes.
struct MemoryEstimate {
  std::int64_t threads = 1;
  double program = 0;     // code, shared libraries, stacks and buffers of threads
  double data = 0;        // the vocabulary, and the rows of data files
  double parameters = 0;  // and the weights packed for products
  double gradients = 0;   // a buffer per shard
  double optimizer = 0;
  double activations = 0;  // of a micro-batch, on all threads
  double checkpoint = 0;   // a file while being written or read
  double sums = 0;         // of an evaluation, by micro-batch
  double sequences =
      0;  // what inspection stores of the sequences that it analyzes, and its report; predictions

  double total() const;
  std::array<std::pair<std::string_view, double>, 9> parts() const {
    return {{{"program", program},
             {"data", data},
             {"parameters", parameters},
             {"gradients", gradients},
             {"optimizer", optimizer},
             {"activations", activations},
             {"checkpoint", checkpoint},
             {"sums", sums},
             {"sequences", sequences}}};
  }
};

// Return the memory of training or a benchmark in one of `ranks` processes, and of a check of the model's gradients, in
// double.
MemoryEstimate training_memory(const OpenConfig&, int ranks = 1);
MemoryEstimate model_check_memory(OpenConfig);

// Return upper bounds of what other commands need: weights, a planned pass for each thread, and what is kept of sequences.
MemoryEstimate evaluation_bound(const OpenConfig&, std::int64_t sequences, bool predictions = false);
// Of inspecting, ablating or patching; `examples` are kept with all attention weights, for a table, a page or JSON text.
enum class ReportOutput { none, page, json };
MemoryEstimate inspection_bound(const OpenConfig&, std::int64_t sequences, std::int64_t examples = 0,
                                ReportOutput output = ReportOutput::none);
// Of passes over single sequences and of generating `outputs` at once; the attention weights of `kept` sequences are kept.
MemoryEstimate tracing_bound(const OpenConfig&, std::int64_t kept = 0, std::int64_t outputs = 1);

// Returns a line for each part that is not 0.
std::string describe(const MemoryEstimate&);

// Returns why memory does not suffice, by part, with the keys to lower; "" if it does. A bound may be exceeded by what is
// available twice over, as it is above what is needed.
std::string memory_shortage(const MemoryEstimate&, double available, bool is_bound = false);

// Returns {"total", part...}.
Json to_json(const MemoryEstimate&);

// Returns the cost of training: {"parameters", "flops_per_step", "memory_bytes": {"total", part...},
// "micro_batch", "ops": [{"layer", "op", "calls", "bytes", "forward_flops", "backward_flops"}]}; see
// StepCost.
Json cost_json(const OpenConfig&);

}  // namespace thimble
