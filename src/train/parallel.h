// The loop over shards, the one place where threads are made.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

namespace thimble {

// f(i, thread) for i = 0 .. n-1, on whichever of `threads` threads is free; thread < threads. The first exception, by i,
// is thrown on after all have ended.
template <class F>
void parallel_for(int threads, std::int64_t n, const F& f) {
  std::exception_ptr failure;
  std::int64_t failed_at = n;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t i = 0; i < n; ++i) {
    try {
      f(i, omp_get_thread_num());
    } catch (...) {
#pragma omp critical
      if (i < failed_at) {
        failed_at = i;
        failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

// 0 means every core that this process may use.
inline int thread_count(std::int64_t wanted) { return wanted > 0 ? static_cast<int>(wanted) : std::max(1, omp_get_num_procs()); }

}  // namespace thimble
