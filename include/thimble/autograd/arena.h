// Memory for one step: handed out front to back, given back all at once. After the first steps have shown how
// much a step needs, it asks the system for nothing more.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace thimble {

class Arena {
 public:
  // Returns uninitialised memory, aligned to 64 bytes and valid until rewind().
  void* allocate(std::size_t bytes);

  // Adds to used() what allocate(bytes) would, without taking memory.
  void count(std::size_t bytes);

  // Takes back everything. If the last use needed several blocks they become one of just that size, so that
  // the next needs none.
  void rewind();

  std::size_t used() const { return total_ + counted_; }  // bytes handed out since the last rewind, padded
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
  std::size_t total_ = 0;  // handed out since the last rewind
  std::size_t counted_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace thimble
