// The memory of a WebAssembly instance, which grows up to a limit that is set when it is linked.
#include "train/files/memory.h"

#include "addons/lab/session.h"
#include "thimble/engine/error.h"

#include <emscripten/heap.h>

namespace thimble {

double available_memory(std::int64_t, const std::filesystem::path&) {
  return static_cast<double>(emscripten_get_heap_max());
}

void lab::require_room(const MemoryEstimate& memory, bool is_bound) {
  const std::string shortage = memory_shortage(memory, available_memory(), is_bound);
  require<ConfigError>(shortage.empty(), "{}", shortage);
}

void return_large_blocks() {}

std::int64_t peak_memory() { return static_cast<std::int64_t>(emscripten_get_heap_size()); }

}  // namespace thimble
