#include "train/files/memory.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "train/files/thread_pool.h"

namespace thimble {

namespace {

namespace fs = std::filesystem;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Returns the number that a file starts with; infinity when there is no file or no number.
double leading_number(const fs::path& path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? value : kUnlimited;
}

double machine_memory(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  for (std::string key; file >> key; file.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    double kibibytes = 0;
    if (key == "MemAvailable:" && file >> kibibytes) return 1024 * kibibytes;
  }
  return kUnlimited;
}

// Returns what a control group has left: what it holds of files can be taken from it.
double left_in(const fs::path& group) {
  double cache = 0;
  std::ifstream statistics(group / "memory.stat");
  double bytes = 0;
  for (std::string key; statistics >> key >> bytes;)
    if (key == "active_file" || key == "inactive_file") cache += bytes;
  const double used = leading_number(group / "memory.current");
  return leading_number(group / "memory.max") - (used < kUnlimited ? std::max(0.0, used - cache) : 0);
}

// Returns what this process's group and the groups above it, of version 2, have left; its line of proc/self/cgroup is
// 0::PATH.
double left_in_groups(const fs::path& root) {
  double left = kUnlimited;
  std::ifstream file(root / "proc/self/cgroup");
  const fs::path top = root / "sys/fs/cgroup";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::")) continue;
    for (fs::path group = fs::path(line.substr(3)).relative_path(); !group.empty();
         group = group.parent_path())
      left = std::min(left, left_in(top / group));
    left = std::min(left, left_in(top));
  }
  return left;
}

double left_in_system(const fs::path& root) { return std::min(machine_memory(root), left_in_groups(root)); }

// The columns of proc/self/statm.
enum Statm { kAddressSpace = 0, kData = 5 };

// Returns the bytes in use by a column of statm, 0 where it cannot be read.
double in_use(Statm column, const fs::path& root) {
  std::ifstream file(root / "proc/self/statm");
  double pages = 0;
  for (int i = 0; i <= column; ++i)
    if (!(file >> pages)) return 0;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double left_of_limit(int resource, Statm column, const fs::path& root) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return static_cast<double>(limit.rlim_cur) - in_use(column, root);
}

}  // namespace

double available_memory(const fs::path& root) {
  return std::max(0.0, std::min({left_in_system(root), left_of_limit(RLIMIT_AS, kAddressSpace, root),
                                 left_of_limit(RLIMIT_DATA, kData, root)}));
}

void limit_data([[maybe_unused]] std::int64_t processes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  rlimit data{}, stack{};
  if (::getrlimit(RLIMIT_DATA, &data) != 0 || ::getrlimit(RLIMIT_STACK, &stack) != 0) return;
  constexpr double kUsualStack = 8 << 20;  // where there is no limit, that of a thread is 2 MiB
  const double of_thread = std::min(kUsualStack, static_cast<double>(stack.rlim_cur));
  const double limit = in_use(kData, "/") + left_in_system("/") / static_cast<double>(processes) +
                       of_thread * static_cast<double>(usable_cores());
  if (!(limit < static_cast<double>(data.rlim_cur))) return;
  data.rlim_cur = static_cast<rlim_t>(limit);
  ::setrlimit(RLIMIT_DATA, &data);
#endif
}

void return_large_blocks() {
  constexpr int kLarge = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLarge);
  ::mallopt(M_TRIM_THRESHOLD, kLarge);
}

std::int64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{1024} * usage.ru_maxrss;
}

}  // namespace thimble
