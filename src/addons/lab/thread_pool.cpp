// A pool without threads: what is computed at the same time is computed by other instances.
#include "train/files/thread_pool.h"

namespace thimble {

std::int64_t usable_cores() { return 1; }

ThreadPool::ThreadPool(std::int64_t) {}

ThreadPool::~ThreadPool() = default;

void ThreadPool::run_items(std::int64_t n, Function function, const void* context) {
  for (std::int64_t i = 0; i < n; ++i) function(context, i, 0);
}

}  // namespace thimble
