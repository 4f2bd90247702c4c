#include "thimble/engine/arena.h"

#include <algorithm>

namespace thimble {

namespace {
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kFirstBlock = std::size_t{1} << 20;

std::size_t padded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
}  // namespace

void Arena::Free::operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{kAlignment}); }

void Arena::add_block(std::size_t size) {
  auto* memory = static_cast<std::byte*>(::operator new (size, std::align_val_t{kAlignment}));
  blocks_.push_back({std::unique_ptr<std::byte, Free>(memory), size});
  capacity_ += size;
  used_ = 0;
}

void* Arena::allocate(std::size_t bytes) {
  bytes = padded(bytes);
  if (blocks_.empty() || used_ + bytes > blocks_.back().size)
    add_block(std::max({bytes, capacity_, kFirstBlock}));
  void* result = blocks_.back().memory.get() + used_;
  used_ += bytes;
  total_ += bytes;
  return result;
}

void Arena::count(std::size_t bytes) { counted_ += padded(bytes); }

void Arena::rewind() {
  if (blocks_.size() > 1) {
    blocks_.clear();
    capacity_ = 0;
    add_block(total_);
  }
  used_ = 0;
  total_ = counted_ = 0;
}

}  // namespace thimble
