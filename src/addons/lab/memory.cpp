// The memory of a WebAssembly instance, which grows up to a limit that is set when it is linked.
#include "train/files/memory.h"

#include <emscripten/heap.h>

namespace thimble {

MemoryLimit available_memory(std::int64_t, const std::filesystem::path&) {
  return {.kind = MemoryLimit::machine, .available = static_cast<double>(emscripten_get_heap_max())};
}

void return_large_blocks() {}

std::int64_t peak_memory() { return static_cast<std::int64_t>(emscripten_get_heap_size()); }

}  // namespace thimble
