#include "train/step/gradient_sum.h"

#include "engine/kernels/elementwise.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

class LocalSum : public GradientSum {
 public:
  explicit LocalSum(const SumSizes& sizes)
      : segments_(sizes.segments.size()), tree_(sum_tree(sizes.shards)), buffers_(sizes.shards) {
    for (auto& buffer : buffers_) buffer.resize(sizes.store.size());
  }

  std::span<Real> of_shard(std::size_t shard) override { return buffers_[shard]; }
  Range segments() const override { return {0, segments_}; }
  std::span<const Real> sum(const Segment& segment) override {
    const auto part = [&](std::size_t shard) {
      return std::span(buffers_[shard]).subspan(segment.offset, segment.size);
    };
    for (const SumNode& node : tree_) add_gradients(part(node.to), part(node.from));
    return part(0);
  }
  std::span<const Real> total() const override { return buffers_.front(); }

 private:
  const std::size_t segments_;
  const std::vector<SumNode> tree_;
  std::vector<AlignedVector<Real>> buffers_;  // of shards
};

}  // namespace

std::vector<SumNode> sum_tree(std::size_t shards) {
  std::vector<SumNode> tree;
  for (std::size_t gap = 1; gap < shards; gap *= 2)
    for (std::size_t s = 0; s + gap < shards; s += 2 * gap) tree.push_back({s, s + gap});
  return tree;
}

void add_gradients(std::span<Real> to, std::span<const Real> from) {
  const auto n = static_cast<std::int64_t>(to.size());
  kernels::accumulate(MatrixView{to.data(), 1, n, n}, ConstMatrixView{from.data(), 1, n, n});
}

std::unique_ptr<GradientSum> local_sum(const SumSizes& sizes) { return std::make_unique<LocalSum>(sizes); }

}  // namespace THIMBLE_PRECISION

std::unique_ptr<GradientSum> Ranks::gradient_sum(const SumSizes& sizes) { return local_sum(sizes); }

}  // namespace thimble
