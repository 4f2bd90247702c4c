#include "addons/cluster/bucket_sum.h"

#include <algorithm>

namespace thimble {
inline namespace THIMBLE_PRECISION {

BucketSum::BucketSum(Communicator& ranks, const SumSizes& sizes, std::size_t bucket)
    : ranks_(ranks),
      all_segments_(sizes.segments),
      shards_(parts_of(sizes.shards, ranks.size())),
      sent_(static_cast<std::size_t>(ranks.size())),
      received_(sizes.shards) {
  const std::size_t shards = sizes.shards, size = sizes.store.size();
  require<ConfigError>(
      std::cmp_less_equal(ranks.size(), shards),
      "train.shards is {}, but {} processes were started, and each computes at least one shard; start at most {}, or raise train.shards, which changes rounding",
      shards, ranks.size(), shards);
  std::size_t first = 0;
  for (const Range& share : parts_of(size, ranks.size())) {
    const auto end = std::ranges::lower_bound(all_segments_, share.last, {}, &Segment::offset);
    const auto last = static_cast<std::size_t>(end - all_segments_.begin());
    const auto offset = [&](std::size_t i) {
      return i < all_segments_.size() ? all_segments_[i].offset : size;
    };
    segments_.push_back({first, last});
    elements_.push_back({offset(first), offset(last)});
    first = last;
  }
  buffers_.resize(ranks_.own_of(shards_).size());
  for (auto& buffer : buffers_) buffer.resize(size);

  std::vector<bool> is_sent(shards, true);
  for (const SumNode& node : sum_tree(shards)) {
    // Node `to` stands for the shards to .. 2 * from - to - 1.
    const std::size_t last = std::min(2 * node.from - node.to, shards) - 1;
    const Range& of_rank =
        *std::ranges::find_if(shards_, [&](const Range& r) { return r.contains(node.to); });
    if (!of_rank.contains(last)) {
      shared_.push_back(node);
      continue;
    }
    if (&of_rank == &ranks_.own_of(shards_)) local_.push_back(node);
    is_sent[node.from] = false;
  }
  for (std::size_t rank = 0; rank < sent_.size(); ++rank) {
    for (std::size_t s = shards_[rank].first; s < shards_[rank].last; ++s) {
      if (!is_sent[s]) continue;
      sent_[rank].push_back(s);
      if (&shards_[rank] != &ranks_.own_of(shards_)) received_[s].resize(ranks_.own_of(elements_).size());
    }
  }
  make_buckets(sizes.store, bucket);
}

void BucketSum::make_buckets(const ParameterStore& store, std::size_t size) {
  for (std::size_t rank = segments_.size(); rank-- > 0;) {
    const Range& all = segments_[rank];
    for (std::size_t last = all.last; last > all.first;) {
      Bucket& bucket = buckets_.emplace_back();
      bucket.rank = rank;
      bucket.elements.last = all_segments_[last - 1].offset + all_segments_[last - 1].size;
      std::size_t first = last;
      do {
        --first;
      } while (first > all.first && bucket.elements.last - all_segments_[first].offset < size);
      bucket.segments = {first, last};
      bucket.elements.first = all_segments_[first].offset;
      last = first;
    }
  }
  for (const auto& entry : store.entries()) {
    Range& range = buckets_of_.emplace_back();
    const auto has_elements = [&](const Bucket& b) {
      return b.elements.first < entry.offset + entry.size() && entry.offset < b.elements.last;
    };
    while (range.first < buckets_.size() && !has_elements(buckets_[range.first])) ++range.first;
    range.last = range.first;
    for (; range.last < buckets_.size() && has_elements(buckets_[range.last]); ++range.last)
      ++buckets_[range.last].parameters;
  }
}

std::span<Real> BucketSum::part(std::size_t shard, const Segment& segment) {
  if (ranks_.own_of(shards_).contains(shard)) return of_shard(shard).subspan(segment.offset, segment.size);
  return std::span(received_[shard]).subspan(segment.offset - ranks_.own_of(elements_).first, segment.size);
}

void BucketSum::add(const SumNode& node, const Segment& segment) {
  add_gradients(part(node.to, segment), part(node.from, segment));
}

void BucketSum::sum_shards(const Segment& segment) {
  for (const SumNode& node : local_) add(node, segment);
}

void BucketSum::start() {
  const auto shards = static_cast<std::int64_t>(ranks_.own_of(shards_).size());
  next_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.left = shards * bucket.parameters;
    if (bucket.rank != static_cast<std::size_t>(ranks_.rank())) continue;
    const std::size_t offset = bucket.elements.first - ranks_.own_of(elements_).first;
    for (int i = 1; i < ranks_.size(); ++i) {
      const int from = (ranks_.rank() + ranks_.size() - i) % ranks_.size();
      for (const std::size_t shard : sent_[static_cast<std::size_t>(from)])
        ranks_.receive(from, std::as_writable_bytes(
                                 std::span(received_[shard]).subspan(offset, bucket.elements.size())));
    }
  }
}

void BucketSum::send(const Bucket& bucket) {
  if (bucket.rank == static_cast<std::size_t>(ranks_.rank())) return;
  for (std::size_t i = bucket.segments.first; i < bucket.segments.last; ++i) sum_shards(all_segments_[i]);
  for (const std::size_t shard : ranks_.own_of(sent_))
    ranks_.send(static_cast<int>(bucket.rank),
                std::as_bytes(of_shard(shard).subspan(bucket.elements.first, bucket.elements.size())));
}

void BucketSum::complete(Parameter parameter) {
  const Range& range = buckets_of_[static_cast<std::size_t>(parameter.index)];
  bool is_last = false;
  for (std::size_t i = range.first; i < range.last; ++i) is_last |= --buckets_[i].left == 0;
  const std::lock_guard lock(mutex_);
  if (is_last)
    for (; next_ < buckets_.size() && buckets_[next_].left == 0; ++next_) send(buckets_[next_]);
  ranks_.poll();
}

void BucketSum::exchange() {
  for (; next_ < buckets_.size(); ++next_) send(buckets_[next_]);
  ranks_.wait();
}

std::span<const Real> BucketSum::sum(const Segment& segment) {
  sum_shards(segment);
  for (const SumNode& node : shared_) add(node, segment);
  const std::span<Real> sum = part(0, segment);
  const std::span<Real> total = std::span(buffers_.front()).subspan(segment.offset, segment.size);
  if (sum.data() != total.data()) std::ranges::copy(sum, total.begin());
  return total;
}

void BucketSum::share(std::span<double> of_segments) {
  ranks_.start_all_gather(of_segments, segments_);
  ranks_.start_all_gather(std::span(buffers_.front()), elements_);
  ranks_.wait();
}

}  // namespace THIMBLE_PRECISION

std::unique_ptr<GradientSum> Communicator::gradient_sum(const SumSizes& sizes) {
  return std::make_unique<BucketSum>(*this, sizes);
}

}  // namespace thimble
