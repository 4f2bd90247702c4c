// Hooks of evaluation passes: what replaces, copies or combines. inspect has further ones, which observe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "thimble/engine/hooks.h"
#include "thimble/train/batch.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// A batch of consecutive sequences of a split, starting at `first`.
struct Chunk {
  std::int64_t first = 0;
  Batch batch;

  // Returns where the sequences of the batch begin in a tensor of these alone, or of all sequences.
  std::int64_t first_in(const Tensor& x) const;
};

// Hooks with the sequences of the pass.
class ChunkHooks : public Hooks {
 public:
  virtual void begin(const Chunk&) {}
  virtual void end() {}  // after the pass and its backward pass, if any
};

// Hooks that replace the values of some sites, all or in part.
class Replace : public ChunkHooks {
 public:
  using Sites = std::function<bool(Site)>;
  // Overwrites the value of a site in place, where row 0 is of sequence `first` of a split, and returns the number
  // of rows that it has replaced.
  using Source = std::function<std::int64_t(std::int64_t first, Site, const Shape&, MatrixView value)>;

  Replace(Sites sites, Source source) : sites_(std::move(sites)), source_(std::move(source)) {}

  void begin(const Chunk& chunk) override { first_ = chunk.first; }
  bool may_replace(Site site) const override { return sites_(site); }
  bool replace(Site site, const Shape& shape, MatrixView value) override {
    const std::int64_t rows = source_(first_, site, shape, value);
    replaced_ += rows;
    return rows > 0;
  }
  std::int64_t replaced() const { return replaced_; }  // rows, in all passes

 private:
  const Sites sites_;
  const Source source_;
  std::int64_t first_ = 0, replaced_ = 0;
};

// Hooks that copy the values of sites into tensors (sequences, T, columns), of the sequences of the pass or of all.
class Capture : public ChunkHooks {
 public:
  using Sites = std::multimap<Site, Tensor*>;
  explicit Capture(const Sites& sites) : sites_(sites) {}

  void begin(const Chunk& chunk) override { chunk_ = &chunk; }
  bool may_replace(Site) const override { return false; }
  void observe(Site site, const Shape& shape, ConstMatrixView value) override;

 private:
  const Sites& sites_;
  const Chunk* chunk_ = nullptr;
};

// Several hooks of the same passes: each may replace what those before it leave, and then all observe the result.
class Combined : public ChunkHooks {
 public:
  Combined(std::initializer_list<ChunkHooks*> all) : all_(all) {}
  explicit Combined(std::vector<std::unique_ptr<ChunkHooks>> owned) : owned_(std::move(owned)) {
    for (const std::unique_ptr<ChunkHooks>& hooks : owned_) all_.push_back(hooks.get());
  }

  void begin(const Chunk& chunk) override {
    for (ChunkHooks* hooks : all_) hooks->begin(chunk);
  }
  bool may_replace(Site site) const override {
    return std::ranges::any_of(all_, [&](const ChunkHooks* hooks) { return hooks->may_replace(site); });
  }
  bool replace(Site site, const Shape& shape, MatrixView value) override {
    bool replaced = false;
    for (ChunkHooks* hooks : all_) replaced |= hooks->may_replace(site) && hooks->replace(site, shape, value);
    return replaced;
  }
  void observe(Site site, const Shape& shape, ConstMatrixView value) override {
    for (ChunkHooks* hooks : all_) hooks->observe(site, shape, value);
  }
  void end() override {
    for (ChunkHooks* hooks : all_) hooks->end();
  }

 private:
  std::vector<std::unique_ptr<ChunkHooks>> owned_;
  std::vector<ChunkHooks*> all_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
