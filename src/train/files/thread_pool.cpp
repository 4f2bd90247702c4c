#include "train/files/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "thimble/engine/error.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace thimble {

namespace {

// Iterations of about 50 to 100 microseconds: longer than the gaps within a training step, short enough for a
// busy machine.
constexpr int kSpins = 2000;

void pause() {
#ifdef __x86_64__
  _mm_pause();
#endif
}

// Waits until the value is no longer `old`, first spinning, then asleep.
template <class T>
void wait_while(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

// Ends the workers, which wait for the next ticket.
void stop(std::atomic<bool>& stopping, std::atomic<std::uint64_t>& ticket,
          std::vector<std::thread>& workers) {
  stopping.store(true);
  ticket.fetch_add(std::uint64_t{1} << 32);
  ticket.notify_all();
  for (std::thread& worker : workers) worker.join();
}

// Returns whether there is memory for the stack of a thread, whose absence has the same error as a limit on threads.
bool has_room_for_stack() {
  pthread_attr_t attributes;
  std::size_t size = 0;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_getstacksize(&attributes, &size);
  ::pthread_attr_destroy(&attributes);
  void* stack = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  return stack != MAP_FAILED && ::munmap(stack, size) == 0;
}

}  // namespace

std::int64_t usable_cores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return std::max(1u, std::thread::hardware_concurrency());
  return CPU_COUNT(&set);
}

ThreadPool::ThreadPool(std::int64_t threads) {
  if (threads <= 0) threads = usable_cores();
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& e) {
    const int started = this->threads();
    const bool has_room = has_room_for_stack();  // which there will be, once those that started are stopped
    stop(stopping_, ticket_, workers_);
    throw Error(fmt::format("{} of {} threads could be started: {}; use fewer with --threads{}", started,
                            threads, has_room ? e.code().message() : "no memory for a stack",
                            has_room ? ", or raise the limit (ulimit -u)" : ""));
  } catch (...) {
    stop(stopping_, ticket_, workers_);
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(stopping_, ticket_, workers_); }

void ThreadPool::work(int thread) {
  std::uint64_t seen = 0;
  for (;;) {
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while (ticket >> 32 == seen) {
      wait_while(ticket_, ticket);
      ticket = ticket_.load(std::memory_order_acquire);
    }
    if (stopping_.load()) return;
    seen = ticket >> 32;
    take_items(seen, thread);
  }
}

void ThreadPool::take_items(std::uint64_t loop, int thread) {
  const Function function = function_.load(std::memory_order_acquire);
  const void* context = context_.load(std::memory_order_acquire);
  const std::uint32_t items = items_.load(std::memory_order_acquire);
  // Few items always run on the first threads: what others would keep for them is memory for nothing.
  if (static_cast<std::uint32_t>(thread) >= items) return;
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  for (;;) {
    const auto item = static_cast<std::uint32_t>(ticket);
    if (ticket >> 32 != loop || item >= items) return;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
    try {
      function(context, item, thread);
    } catch (...) {
      const std::lock_guard lock(failure_mutex_);
      if (!failure_ || item < failed_item_) {
        failure_ = std::current_exception();
        failed_item_ = item;
      }
    }
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == items) done_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadPool::run_items(std::int64_t n, Function function, const void* context) {
  require<Error>(n >= 0 && n <= INT32_MAX, "thread pool: a loop of {} items", n);
  if (n == 0) return;
  if (n == 1) return function(context, 0, 0);  // without a word to the others
  const auto items = static_cast<std::uint32_t>(n);
  // Closes the last loop before its description changes: a late thread that reads parts of the new
  // description cannot claim an item with the old ticket.
  const std::uint64_t closed = (ticket_.load(std::memory_order_relaxed) >> 32) + 1, loop = closed + 1;
  ticket_.store(closed << 32 | UINT32_MAX, std::memory_order_release);
  function_.store(function, std::memory_order_release);
  context_.store(context, std::memory_order_release);
  items_.store(items, std::memory_order_release);
  done_.store(0, std::memory_order_release);
  // Sequentially consistent, so that notify_all cannot run before this store is visible.
  ticket_.store(loop << 32);
  ticket_.notify_all();
  take_items(loop, 0);
  for (std::uint32_t done = done_.load(std::memory_order_acquire); done != items;) {
    wait_while(done_, done);
    done = done_.load(std::memory_order_acquire);
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace thimble
