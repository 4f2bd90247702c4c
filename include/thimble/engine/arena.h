// Memory for one step, allocated front to back and released all at once. After the first steps it allocates
// nothing from the system.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace thimble {

// A bump allocator.
class Arena {
 public:
  // Returns uninitialized memory, aligned to 64 bytes and valid until rewind().
  void* allocate(std::size_t bytes);

  // Adds to used() as allocate(bytes) does, without allocating.
  void count(std::size_t bytes);

  // Releases all memory. Replaces several blocks by one of their total use, so that the next use needs no
  // other.
  void rewind();

  std::size_t used() const { return total_ + counted_; }  // bytes allocated since the last rewind, padded
  std::size_t capacity() const { return capacity_; }      // bytes held

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  struct Block {
    std::unique_ptr<std::byte, Free> memory;
    std::size_t size = 0;
  };
  void add_block(std::size_t size);

  std::vector<Block> blocks_;
  std::size_t used_ = 0;   // of the last block
  std::size_t total_ = 0;  // allocated since the last rewind
  std::size_t counted_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace thimble
