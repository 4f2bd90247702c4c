// Two items of one loop write the same number, one after the other but without synchronisation. The thread
// sanitizer must report it: if this ends quietly, the sanitizer does not see what the threads of a ThreadPool
// do, and its silence elsewhere proves nothing.
#include <atomic>

#include "train/files/thread_pool.h"

int main() {
  thimble::ThreadPool pool(2);
  std::atomic<int> arrived{0};
  std::atomic<bool> written{false};
  int shared = 0;
  pool.run(2, [&](auto item, int) {
    arrived.fetch_add(1, std::memory_order_relaxed);
    while (arrived.load(std::memory_order_relaxed) < 2) continue;  // so that each thread has one item
    while (item == 1 && !written.load(std::memory_order_relaxed)) continue;
    shared += 1;
    written.store(true, std::memory_order_relaxed);
  });
  return shared == 2 ? 0 : 1;
}
