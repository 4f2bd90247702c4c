// Threads that share the items of a loop.
//
// A loop ends when its items are done, whether or not every thread took part: on a busy machine a thread that
// the system has suspended delays no other, and the caller does its share. (An OpenMP loop waits for all of
// its threads; sharing two cores with a compiler made a training step ten times slower that way.)
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace thimble {

// Returns the number of cores that this process may use.
std::int64_t usable_cores();

// A pool of threads, the caller's included.
class ThreadPool {
 public:
  // Starts `threads` - 1 threads; 0 means usable_cores(). Throws Error when one does not start.
  explicit ThreadPool(std::int64_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls f(i, thread) once for each i in 0 .. n-1, on whichever thread is free, 0 <= thread < threads(), and
  // returns when all are done. Rethrows the exception of the smallest i that threw, if any. Not to be called
  // by two threads at once, nor from f. Allocates nothing.
  template <class F>
  void run(std::int64_t n, const F& f) {
    run_items(
        n,
        [](const void* context, std::int64_t i, int thread) { (*static_cast<const F*>(context))(i, thread); },
        &f);
  }

 private:
  using Function = void (*)(const void* context, std::int64_t i, int thread);

  void run_items(std::int64_t n, Function function, const void* context);
  void work(int thread);
  void take_items(std::uint64_t loop, int thread);

  // Number of the loop in the upper half, its next item in the lower: one exchange claims an item and proves
  // that the loop is not over, so that a late thread touches nothing.
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<Function> function_{nullptr};
  std::atomic<const void*> context_{nullptr};
  std::atomic<std::uint32_t> items_{0}, done_{0};
  std::atomic<bool> stopping_{false};
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::int64_t failed_item_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace thimble
