// The memory of a WebAssembly instance, which grows up to a limit that is set when it is linked.
#include "train/files/memory.h"

#include <emscripten/heap.h>

namespace thimble {

double available_memory(const std::filesystem::path&) {
  return static_cast<double>(emscripten_get_heap_max());
}

void return_large_blocks() {}

std::int64_t peak_memory() { return static_cast<std::int64_t>(emscripten_get_heap_size()); }

}  // namespace thimble
