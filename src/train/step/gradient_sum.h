// Sums the gradients of shards over all ranks.
//
// The sum is a fixed binary tree over the shards: for gap = 1, 2, 4, ..., shard s takes over shard s + gap. So
// its bits depend on the number of shards alone. A rank computes consecutive shards, and sums what it can of
// the tree itself; the rest is summed where it is needed, since a + b has the same bits on every rank. For
// that, the segments of the optimizer are divided among the ranks (a reduce-scatter).
//
// Gradients travel in buckets, from the last one to the first, which is about the order in which a backward pass
// completes them: as in PyTorch's DistributedDataParallel (Li et al. 2020), those of the last layers travel while
// earlier layers still compute.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "thimble/engine/optimizer.h"
#include "thimble/engine/parameter.h"
#include "thimble/train/communicator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The gradients of this rank's shards, and their sum over all ranks.
class GradientSum {
 public:
  using Segment = Optimizer::Segment;

  // Makes buffers of the store's size for the shards of this rank. Buckets have `bucket` elements or more, but
  // for the last one of a rank. Throws ConfigError if a rank gets no shard. `segments` must outlive the object.
  GradientSum(Communicator& ranks, std::size_t shards, std::span<const Segment> segments,
              const ParameterStore& store, std::size_t bucket = kBucket);

  const std::vector<Range>& shards() const { return shards_; }      // of each rank
  const std::vector<Range>& segments() const { return segments_; }  // that each rank sums
  const std::vector<Range>& elements() const { return elements_; }  // of those segments

  // Returns the buffer of a shard of this rank.
  std::span<Real> of_shard(std::size_t shard) { return buffers_[shard - ranks_.own(shards_).first]; }

  // Starts to receive the gradients of the next step.
  void start();
  // Counts the gradient of a parameter in one shard of this rank as complete. Once they are complete in all of
  // them, starts to send a bucket, unless one after it is not complete. May be called on any thread.
  void complete(Parameter parameter);
  // Sends the buckets that are left, and waits until those of all ranks have arrived.
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

  static constexpr std::size_t kBucket = (256 << 10) / sizeof(Real);

  // Consecutive segments that `rank` sums over all ranks.
  struct Bucket {
    std::size_t rank;
    Range segments, elements;
    std::int64_t parameters = 0;         // that it has elements of
    std::atomic<std::int64_t> left = 0;  // of them, counted once for each shard of this rank
  };

  void make_buckets(const ParameterStore& store, std::size_t size);
  std::span<Real> part(std::size_t shard, const Segment& segment);
  void add(const Node& node, const Segment& segment);
  void sum_shards(const Segment& segment);  // of this rank, as far as the tree permits
  void send(const Bucket& bucket);

  Communicator& ranks_;
  const std::span<const Segment> all_segments_;
  std::vector<Range> shards_, segments_, elements_;
  std::deque<Bucket> buckets_;     // the last elements first
  std::vector<Range> buckets_of_;  // each parameter
  std::size_t next_ = 0;           // bucket to send
  std::mutex mutex_;               // of next_ and of the messages
  std::vector<AlignedVector<Real>> buffers_;
  std::vector<Node> local_, shared_;            // nodes within this rank, and nodes that join ranks
  std::vector<std::vector<std::size_t>> sent_;  // by rank: the shards that stand for its local sums
  std::vector<AlignedVector<Real>> received_;   // by shard: the elements of this rank; empty: not received
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
