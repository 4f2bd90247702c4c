// Estimates parameters, arithmetic and memory of a config before anything is allocated.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thimble/engine/op_cost.h"
#include "thimble/train/config.h"
#include "thimble/train/json.h"
#include "train/files/memory.h"

namespace thimble {

// Returns how many sequences of `length` tokens a thread computes at once: as many as fit a core's cache, at
// least 1.
std::int64_t micro_batch(std::int64_t length);

// Returns the number of micro-batches of a shard in training: the fewest of at most micro_batch(length) sequences.
std::int64_t micro_batches_of_shard(const TrainConfig&, std::int64_t length);

// Returns the sequences of the largest micro-batch of training, as those of a shard are as even as possible.
std::int64_t largest_micro_batch(const TrainConfig&, std::int64_t length);

// The sequences of a model check.
inline constexpr std::int64_t kModelCheckSequences = 3;

// The cost of a training step.
struct StepCost {
  double parameters = 0;       // elements of all parameters
  double flops = 0;            // FLOPs of all ops
  std::int64_t sequences = 0;  // in the largest micro-batch
  std::vector<OpCost> ops;     // FLOPs of the whole step; bytes and calls of a micro-batch
};
StepCost step_cost(const Config&);

// A job that needs memory; inspection_memory.h and compare_memory.h have those of their rooms.
enum class Job {
  training,     // also benchmarks
  evaluation,   // of the larger of the validation and test splits
  model_check,  // gradient check, in double
};

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

// Returns the memory of a process; ranks: those that train together.
MemoryEstimate estimate_memory(Job, const Config&, int ranks = 1);
// Returns the memory of evaluating that many sequences, and of a table of predictions.
MemoryEstimate evaluation_memory(const Config&, std::int64_t sequences, bool predictions = false);

// For estimates of other rooms: returns the memory of an Evaluator without tapes, once it has loaded its
// weights; `loading`: while it reads them from a checkpoint of a run.
MemoryEstimate evaluator_memory(const Config&, bool loading = false);
// Returns the estimate with the largest total, of phases that do not overlap.
MemoryEstimate peak(std::initializer_list<MemoryEstimate> phases);
double real_size(const Config&);         // bytes of a number
std::int64_t tokens_of(const Config&);   // of the longest sequence and its source
std::int64_t threads_of(const Config&);  // train.threads, or all cores

// Returns a line for each part that is not 0.
std::string describe(const MemoryEstimate&);

// Throws ConfigError when the estimate exceeds the limit, by default available_memory() of its threads. The
// message has the estimate by part, the origin of the limit and the keys to lower.
void require_memory(const MemoryEstimate&, const MemoryLimit& limit);
void require_memory(const MemoryEstimate&);

// Returns {"total", part...}.
Json to_json(const MemoryEstimate&);

// Returns the cost of training: {"parameters", "flops_per_step", "memory_bytes": {"total", part...},
// "micro_batch", "ops": [{"layer", "op", "calls", "bytes", "forward_flops", "backward_flops"}]}; see
// StepCost.
Json cost_json(const Config&);

}  // namespace thimble
