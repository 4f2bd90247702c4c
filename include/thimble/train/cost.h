// Estimates parameters, arithmetic and memory of a config before anything is allocated.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thimble/autograd/op_cost.h"
#include "thimble/config/config.h"
#include "thimble/core/json.h"
#include "thimble/core/memory.h"

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

// A job that needs memory.
enum class Job {
  training,     // also benchmarks and evaluations, which allocate the same
  inspection,   // of attention heads, on 1000 sequences
  model_check,  // gradient check, in double
};

// An estimate of memory by part, in bytes.
struct MemoryEstimate {
  double program = 0;     // code, shared libraries, stacks and buffers of threads
  double parameters = 0;  // and the weights packed for products
  double gradients = 0;   // a buffer per shard
  double optimizer = 0;
  double activations = 0;  // of a micro-batch, on all threads
  double checkpoint = 0;   // a file while being written or read
  double other = 0;        // sums of an evaluation

  double total() const {
    return program + parameters + gradients + optimizer + activations + checkpoint + other;
  }
  std::array<std::pair<std::string_view, double>, 7> parts() const {
    return {{{"program", program},
             {"parameters", parameters},
             {"gradients", gradients},
             {"optimizer", optimizer},
             {"activations", activations},
             {"checkpoint", checkpoint},
             {"other", other}}};
  }
};

// Returns the memory of a process; ranks: those that train together.
MemoryEstimate estimate_memory(Job, const Config&, int ranks = 1);

// Returns a line for each part that is not 0.
std::string describe(const MemoryEstimate&);

// Throws ConfigError when the estimate exceeds the limit, by default available_memory() of the job's threads.
// The message has the estimate by part, the origin of the limit and the keys to lower.
void require_memory(Job, const Config&, const MemoryLimit& limit, int ranks = 1);
void require_memory(Job, const Config&, int ranks = 1);

// Returns the cost of training: {"parameters", "flops_per_step", "memory_bytes": {"total", part...},
// "micro_batch", "ops": [{"layer", "op", "calls", "bytes", "forward_flops", "backward_flops"}]}; see
// StepCost.
Json cost_json(const Config&);

}  // namespace thimble
