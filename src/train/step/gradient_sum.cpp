#include "train/step/gradient_sum.h"

#include <algorithm>

#include "engine/kernels/elementwise.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

MatrixView as_row(std::span<Real> x) {
  const auto n = static_cast<std::int64_t>(x.size());
  return {x.data(), 1, n, n};
}

}  // namespace

GradientSum::GradientSum(Communicator& ranks, std::size_t shards, std::span<const Segment> segments,
                         const ParameterStore& store, std::size_t bucket)
    : ranks_(ranks),
      all_segments_(segments),
      sent_(static_cast<std::size_t>(ranks.size())),
      received_(shards) {
  require<ConfigError>(
      std::cmp_less_equal(ranks.size(), shards),
      "train.shards is {}, but {} processes were started, and each computes at least one shard; "
      "start at most {}, or raise train.shards, which changes rounding",
      shards, ranks.size(), shards);
  shards_ = parts_of(shards, ranks.size());
  const std::size_t size = store.size();
  std::size_t first = 0;
  for (const Range& share : parts_of(size, ranks.size())) {
    const auto end = std::ranges::lower_bound(segments, share.last, {}, &Segment::offset);
    const auto last = static_cast<std::size_t>(end - segments.begin());
    const auto offset = [&](std::size_t i) { return i < segments.size() ? segments[i].offset : size; };
    segments_.push_back({first, last});
    elements_.push_back({offset(first), offset(last)});
    first = last;
  }
  buffers_.resize(ranks_.own(shards_).size());
  for (auto& buffer : buffers_) buffer.resize(size);

  std::vector<bool> is_sent(shards, true);
  for (std::size_t gap = 1; gap < shards; gap *= 2) {
    for (std::size_t s = 0; s + gap < shards; s += 2 * gap) {
      const std::size_t last = std::min(s + 2 * gap, shards) - 1;
      const Range& of_rank = *std::ranges::find_if(shards_, [&](const Range& r) { return r.contains(s); });
      if (!of_rank.contains(last)) {
        shared_.push_back({s, s + gap});
        continue;
      }
      if (&of_rank == &ranks_.own(shards_)) local_.push_back({s, s + gap});
      is_sent[s + gap] = false;
    }
  }
  for (std::size_t rank = 0; rank < sent_.size(); ++rank) {
    for (std::size_t s = shards_[rank].first; s < shards_[rank].last; ++s) {
      if (!is_sent[s]) continue;
      sent_[rank].push_back(s);
      if (&shards_[rank] != &ranks_.own(shards_)) received_[s].resize(ranks_.own(elements_).size());
    }
  }
  if (ranks.size() > 1) make_buckets(store, bucket);
}

void GradientSum::make_buckets(const ParameterStore& store, std::size_t size) {
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

std::span<Real> GradientSum::part(std::size_t shard, const Segment& segment) {
  if (ranks_.own(shards_).contains(shard)) return of_shard(shard).subspan(segment.offset, segment.size);
  return std::span(received_[shard]).subspan(segment.offset - ranks_.own(elements_).first, segment.size);
}

void GradientSum::add(const Node& node, const Segment& segment) {
  kernels::accumulate(as_row(part(node.to, segment)), as_row(part(node.from, segment)));
}

void GradientSum::sum_shards(const Segment& segment) {
  for (const Node& node : local_) add(node, segment);
}

void GradientSum::start() {
  if (ranks_.size() == 1) return;
  const auto shards = static_cast<std::int64_t>(ranks_.own(shards_).size());
  next_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.left = shards * bucket.parameters;
    if (bucket.rank != static_cast<std::size_t>(ranks_.rank())) continue;
    const std::size_t offset = bucket.elements.first - ranks_.own(elements_).first;
    for (int i = 1; i < ranks_.size(); ++i) {
      const int from = (ranks_.rank() + ranks_.size() - i) % ranks_.size();
      for (const std::size_t shard : sent_[static_cast<std::size_t>(from)])
        ranks_.receive(from, std::as_writable_bytes(
                                 std::span(received_[shard]).subspan(offset, bucket.elements.size())));
    }
  }
}

void GradientSum::send(const Bucket& bucket) {
  if (bucket.rank == static_cast<std::size_t>(ranks_.rank())) return;
  for (std::size_t i = bucket.segments.first; i < bucket.segments.last; ++i) sum_shards(all_segments_[i]);
  for (const std::size_t shard : ranks_.own(sent_))
    ranks_.send(static_cast<int>(bucket.rank),
                std::as_bytes(of_shard(shard).subspan(bucket.elements.first, bucket.elements.size())));
}

void GradientSum::complete(Parameter parameter) {
  const Range& range = buckets_of_[static_cast<std::size_t>(parameter.index)];
  bool is_last = false;
  for (std::size_t i = range.first; i < range.last; ++i) is_last |= --buckets_[i].left == 0;
  const std::lock_guard lock(mutex_);
  if (is_last)
    for (; next_ < buckets_.size() && buckets_[next_].left == 0; ++next_) send(buckets_[next_]);
  ranks_.poll();
}

void GradientSum::exchange() {
  for (; next_ < buckets_.size(); ++next_) send(buckets_[next_]);
  ranks_.wait();
}

std::span<const Real> GradientSum::sum_ranks(const Segment& segment) {
  sum_shards(segment);
  for (const Node& node : shared_) add(node, segment);
  const std::span<Real> sum = part(0, segment);
  const std::span<Real> total = std::span(buffers_.front()).subspan(segment.offset, segment.size);
  if (sum.data() != total.data()) std::ranges::copy(sum, total.begin());
  return total;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
