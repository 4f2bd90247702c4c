// Sums the gradients of the shards of a batch.
//
// The sum is a fixed binary tree over the shards: for gap = 1, 2, 4, ..., shard s takes over shard s + gap. So
// its bits depend on the number of shards alone, not on who computes them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "thimble/engine/optimizer.h"
#include "thimble/engine/parameter.h"
#include "thimble/train/ranks.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// What is summed: `shards` gradients of the store's parameters, in segments of the optimizer. Both must outlive the sum.
struct SumSizes {
  std::size_t shards;
  std::span<const Optimizer::Segment> segments;
  const ParameterStore& store;
};

// A node of the tree: shard `to` takes over shard `from`.
struct SumNode {
  std::size_t to, from;
};
// Returns the nodes of the tree, in an order in which they can be computed.
std::vector<SumNode> sum_tree(std::size_t shards);

// Adds `from` to `to`, which have as many elements.
void add_gradients(std::span<Real> to, std::span<const Real> from);

// The gradients of this process's shards, and the sum over all shards.
class GradientSum {
 public:
  using Segment = Optimizer::Segment;
  virtual ~GradientSum() = default;

  // Returns the buffer of a shard that this process computes.
  virtual std::span<Real> of_shard(std::size_t shard) = 0;
  // Starts the next step.
  virtual void start() {}
  // Returns whether complete() is to be called, on any thread, for each parameter whose gradient in a shard is complete.
  virtual bool watches() const { return false; }
  virtual void complete(Parameter) {}
  // Waits for what others have to send, once all shards are computed.
  virtual void exchange() {}
  // Returns the segments that this process sums, by index, all with sum(), on any thread.
  virtual Range segments() const = 0;
  virtual std::span<const Real> sum(const Segment& segment) = 0;
  // Completes the total, and a number for each segment, with what others have summed.
  virtual void share(std::span<double> /*of_segments*/) {}
  // Returns the sum over all shards, of all segments.
  virtual std::span<const Real> total() const = 0;
};

// Returns the sum of a process that computes all shards.
std::unique_ptr<GradientSum> local_sum(const SumSizes&);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
