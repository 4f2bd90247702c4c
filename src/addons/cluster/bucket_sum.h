// Sums the gradients of shards over all ranks.
//
// A rank computes consecutive shards, and sums what it can of the tree of step/gradient_sum.h itself; the rest is summed
// where it is needed, since a + b has the same bits on every rank. For that, the segments of the optimizer are divided
// among the ranks (a reduce-scatter), and every rank gets the sums of all of them (an all-gather).
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

#include "addons/cluster/communicator.h"
#include "train/step/gradient_sum.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

class BucketSum : public GradientSum {
 public:
  // Makes buffers for the shards of this rank. Buckets have `bucket` elements or more, but for the last one of a rank.
  // Throws ConfigError if a rank gets no shard.
  BucketSum(Communicator& ranks, const SumSizes& sizes, std::size_t bucket = kBucket);

  std::span<Real> of_shard(std::size_t shard) override {
    return buffers_[shard - ranks_.own_of(shards_).first];
  }
  // Starts to receive the gradients of the next step.
  void start() override;
  bool watches() const override { return true; }
  // Once the gradient of a parameter is complete in all shards of this rank, starts to send a bucket, unless one after it
  // is not complete.
  void complete(Parameter parameter) override;
  // Sends the buckets that are left, and waits until those of all ranks have arrived.
  void exchange() override;
  Range segments() const override { return ranks_.own_of(segments_); }
  std::span<const Real> sum(const Segment& segment) override;
  void share(std::span<double> of_segments) override;
  std::span<const Real> total() const override { return buffers_.front(); }

 private:
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
  void add(const SumNode& node, const Segment& segment);
  void sum_shards(const Segment& segment);  // of this rank, as far as the tree permits
  void send(const Bucket& bucket);

  Communicator& ranks_;
  const std::span<const Segment> all_segments_;
  const std::vector<Range> shards_;         // of each rank
  std::vector<Range> segments_, elements_;  // that each rank sums
  std::deque<Bucket> buckets_;              // the last elements first
  std::vector<Range> buckets_of_;           // each parameter
  std::size_t next_ = 0;                    // bucket to send
  std::mutex mutex_;                        // of next_ and of the messages
  std::vector<AlignedVector<Real>> buffers_;
  std::vector<SumNode> local_, shared_;         // nodes within this rank, and nodes that join ranks
  std::vector<std::vector<std::size_t>> sent_;  // by rank: the shards that stand for its local sums
  std::vector<AlignedVector<Real>> received_;   // by shard: the elements of this rank; empty: not received
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
