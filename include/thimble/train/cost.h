// What a config costs: parameters, arithmetic and memory, known before anything is allocated.
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

// Sequences of `length` tokens that a thread computes at once: as many as stay in a core's cache, at least 1.
std::int64_t micro_batch(std::int64_t length);

// The same for training, where a micro-batch is at most a shard.
std::int64_t largest_micro_batch(const TrainConfig&, std::int64_t length);

// Sequences that a model_check uses.
inline constexpr std::int64_t kModelCheckSequences = 3;

// What a training step costs.
struct StepCost {
  double parameters = 0;       // elements of all parameters
  double flops = 0;            // of all ops
  std::int64_t sequences = 0;  // of a micro-batch, the most that a thread computes at once
  std::vector<OpCost> ops;     // FLOPs of the whole step; bytes and calls of a micro-batch
};
StepCost step_cost(const Config&);

// What memory is needed for.
enum class Job {
  training,     // and timing, and measuring a trained model, which builds all that training does
  inspection,   // of the heads, on 1000 sequences
  model_check,  // of gradients, in double
};

// Bytes.
struct MemoryEstimate {
  double program = 0;     // itself, shared libraries, stacks and buffers of threads
  double parameters = 0;  // and their transposes where the CPU's kernels read them
  double gradients = 0;   // a buffer for every shard
  double optimizer = 0;
  double activations = 0;  // what all threads keep of a micro-batch
  double checkpoint = 0;   // a file while it is written or read
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

MemoryEstimate estimate_memory(Job, const Config&);

// The parts that are not 0, a line each.
std::string describe(const MemoryEstimate&);

// Throws ConfigError, with the estimate by part, what sets the limit and the keys to lower, when it is more
// than the limit leaves; without a limit, than available_memory() of the job's threads.
void require_memory(Job, const Config&, const MemoryLimit& limit);
void require_memory(Job, const Config&);

// {"parameters", "flops_per_step", "memory_bytes": {"total", part...}, "micro_batch", "ops": [{"layer", "op",
// "calls", "bytes", "forward_flops", "backward_flops"}]}, of training; see StepCost.
Json cost_json(const Config&);

}  // namespace thimble
