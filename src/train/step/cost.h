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
#include "train/files/memory.h"

namespace thimble {

// Returns a micro-batch of training of a shape that takes the most memory, with a label at every position.
Batch largest_training_batch(const OpenConfig&);

// The sequences of a model check.
inline constexpr std::int64_t kModelCheckSequences = 3;

// The steps whose rows are counted: with their lengths, as far as they are computed, and their labels.
inline constexpr std::int64_t kCountedSteps = 4;

// The cost of a training step, a mean over the first kCountedSteps.
struct StepCost {
  double parameters = 0;       // elements of all parameters
  double flops = 0;            // FLOPs of all ops
  std::int64_t sequences = 0;  // in the largest micro-batch
  std::vector<OpCost> ops;  // FLOPs and traffic of the whole step; bytes and calls of the largest micro-batch
};
StepCost step_cost(const OpenConfig&);

// An estimate of memory by part, in bytes; data files are not in it.
struct MemoryEstimate {
  double program = 0;     // code, shared libraries, stacks and buffers of threads
  double parameters = 0;  // and the weights packed for products
  double gradients = 0;   // a buffer per shard
  double optimizer = 0;
  double activations = 0;  // of a micro-batch, on all threads
  double checkpoint = 0;   // a file while being written or read
  double sums = 0;         // of an evaluation, by micro-batch

  double total() const;
  std::array<std::pair<std::string_view, double>, 7> parts() const {
    return {{{"program", program},
             {"parameters", parameters},
             {"gradients", gradients},
             {"optimizer", optimizer},
             {"activations", activations},
             {"checkpoint", checkpoint},
             {"sums", sums}}};
  }
};

// Return the memory of training or a benchmark in one of `ranks` processes, and of a check of the model's gradients, in
// double.
MemoryEstimate training_memory(const OpenConfig&, int ranks = 1);
MemoryEstimate model_check_memory(OpenConfig);

// Returns a line for each part that is not 0.
std::string describe(const MemoryEstimate&);

// Throw ConfigError where more than the available memory is needed: with the parts and the keys to lower; or by the
// attention weights of sequences of the maximum length in so many models, which a command keeps at once.
void require_fit(const MemoryEstimate&, double available = available_memory());
void require_attention_fits(const OpenConfig&, std::int64_t sequences, std::int64_t models = 1,
                            double available = available_memory());

// Returns {"total", part...}.
Json to_json(const MemoryEstimate&);

// Returns the cost of training: {"parameters", "flops_per_step", "memory_bytes": {"total", part...},
// "micro_batch", "ops": [{"layer", "op", "calls", "bytes", "forward_flops", "backward_flops"}]}; see
// StepCost.
Json cost_json(const OpenConfig&);

}  // namespace thimble
