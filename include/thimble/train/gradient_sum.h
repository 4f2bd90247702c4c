// Sums the gradients of shards over all ranks.
//
// The sum is a fixed binary tree over the shards: for gap = 1, 2, 4, ..., shard s takes over shard s + gap. So
// its bits depend on the number of shards alone. A rank computes consecutive shards, and sums what it can of
// the tree itself; the rest is summed where it is needed, since a + b has the same bits on every rank. For
// that, the segments of the optimizer are divided among the ranks (a reduce-scatter).
#pragma once

#include <span>
#include <vector>

#include "thimble/distributed/communicator.h"
#include "thimble/optim/optimizer.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The gradients of this rank's shards, and their sum over all ranks.
class GradientSum {
 public:
  using Segment = Optimizer::Segment;

  // Makes buffers of `size` elements for the shards of this rank. Throws ConfigError if a rank gets none.
  GradientSum(Communicator& ranks, std::size_t shards, std::span<const Segment> segments, std::size_t size);

  const std::vector<Range>& shards() const { return shards_; }      // of each rank
  const std::vector<Range>& segments() const { return segments_; }  // that each rank sums
  const std::vector<Range>& elements() const { return elements_; }  // of those segments

  // Returns the buffer of a shard of this rank.
  std::span<Real> of_shard(std::size_t shard) { return buffers_[shard - ranks_.own(shards_).first]; }

  // Sums a segment over the shards of this rank, as far as the tree permits.
  void sum_shards(const Segment& segment);
  // Exchanges the segments that sum_shards() has summed with the other ranks.
  void exchange();
  // Sums a segment of this rank over all shards, once exchange() has returned, and returns the sum.
  std::span<const Real> sum_ranks(const Segment& segment);
  // Returns a buffer of which the segments of this rank hold the sum.
  std::span<const Real> total() const { return buffers_.front(); }

 private:
  // A node of the tree: shard `to` takes over shard `from`.
  struct Node {
    std::size_t to, from;
  };

  std::span<Real> part(std::size_t shard, const Segment& segment);
  void add(const Node& node, const Segment& segment);

  Communicator& ranks_;
  std::vector<Range> shards_, segments_, elements_;
  std::vector<AlignedVector<Real>> buffers_;
  std::vector<Node> local_, shared_;            // nodes within this rank, and nodes that join ranks
  std::vector<std::vector<std::size_t>> sent_;  // by rank: the shards that stand for its local sums
  std::vector<AlignedVector<Real>> received_;   // by shard: the elements of this rank; empty: not received
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
