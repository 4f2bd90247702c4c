#include "program/cli/memory.h"

#include "thimble/engine/error.h"
#include "train/files/memory.h"

namespace thimble::cli {

namespace {

void require_enough(const MemoryEstimate& memory, bool is_bound) {
  const std::string shortage = memory_shortage(memory, available_memory(memory.threads), is_bound);
  require<ConfigError>(shortage.empty(), "{}", shortage);
}

}  // namespace

void require_fit(const MemoryEstimate& estimate) { require_enough(estimate, false); }

void require_bound_fits(const MemoryEstimate& bound) { require_enough(bound, true); }

}  // namespace thimble::cli
