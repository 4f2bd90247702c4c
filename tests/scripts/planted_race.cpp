// Two shards that forget to wait for each other. Under the thread sanitizer this must be reported: a run that
// ends quietly means that the sanitizer does not see what OpenMP threads do, and that its silence elsewhere
// proves nothing.
#include <cstdint>
#include <vector>

int main() {
  constexpr std::int64_t kSize = 1000;
  std::vector<float> gradient(kSize), sum(kSize);
#pragma omp parallel num_threads(2)
  {
#pragma omp for schedule(static) nowait
    for (std::int64_t i = 0; i < kSize; ++i) gradient[i] = 1;
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < kSize; ++i) sum[i] = gradient[kSize - 1 - i];
  }
  return sum[0] >= 0 ? 0 : 1;
}
