// Ranks: processes that train one model together, numbered from 0, as training sees them. A process is alone unless
// somebody passes other ranks; the add-on `cluster` has those that MPI starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "thimble/engine/error.h"
#include "thimble/engine/real.h"  // which makes one of the two namespaces inline

namespace thimble {

namespace f32 {
class GradientSum;
struct SumSizes;
}  // namespace f32
namespace f64 {
class GradientSum;
struct SumSizes;
}  // namespace f64

// The items first .. last-1 of a sequence.
struct Range {
  std::size_t first = 0, last = 0;
  std::size_t size() const { return last - first; }
  bool contains(std::size_t i) const { return first <= i && i < last; }
};

// Returns the items of `count` that belong to a rank. Ranks have consecutive items, and as many, give or take
// one.
Range part_of(std::size_t count, int rank, int size);

// This rank and the others; by itself, a process that is alone. All ranks must call the functions that are marked
// collective.
class Ranks {
 public:
  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  Range own(std::size_t count) const { return part_of(count, rank_, size_); }

  // A text that all ranks must share, and what it is.
  struct Shared {
    const char* what;
    std::string text;
  };

  // Collective: copies the items that belong to each rank to all ranks.
  template <class T>
  void all_gather(std::span<T> items) {
    static_assert(std::is_trivially_copyable_v<T>);
    gather_items(std::as_writable_bytes(items), sizeof(T));
  }
  // Collective: copies the values of rank 0 to all ranks.
  template <class T>
  void broadcast(std::span<T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast_bytes(std::as_writable_bytes(values));
  }
  // Collective: copies the text of rank 0 to all ranks.
  void broadcast(std::string& text);
  // Collective: returns whether the condition holds on any rank.
  virtual bool any(bool condition) { return condition; }
  // Collective: throws E, on all ranks, if what they must share differs: they compare one hash of all texts. The
  // message names the first text that differs and the ranks whose text is not that of rank 0, and ends in
  // `remedy`.
  template <class E>
  void require_equal(const std::vector<Shared>& texts, const char* remedy) {
    const std::string difference = difference_of(texts);
    require<E>(difference.empty(), "{}; {}", difference, remedy);
  }

  // Make the sum of the gradients of all ranks, see step/gradient_sum.h.
  virtual std::unique_ptr<f32::GradientSum> gradient_sum(const f32::SumSizes&);
  virtual std::unique_ptr<f64::GradientSum> gradient_sum(const f64::SumSizes&);

  // What this rank has sent, and the time in which it waited for others.
  struct Traffic {
    double wait_seconds = 0;
    std::int64_t bytes = 0, messages = 0;
  };
  const Traffic& traffic() const { return traffic_; }

 protected:
  Ranks(int rank, int size) : rank_(rank), size_(size) {}

  virtual void gather_items(std::span<std::byte>, std::size_t /*of an item*/) {}
  virtual void broadcast_bytes(std::span<std::byte>) {}
  // Returns a sentence that names the ranks that differ; "" if all texts are equal.
  virtual std::string difference_of(const std::vector<Shared>&) { return ""; }

  Traffic traffic_;

 private:
  friend Ranks& one_process();

  const int rank_, size_;
};

// Returns the ranks of a process that is alone.
Ranks& one_process();

}  // namespace thimble
