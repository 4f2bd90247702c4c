#include "train/files/memory.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace thimble {

namespace {

namespace fs = std::filesystem;

// The address space that a thread reserves for its stack, its heap and the buffer of OpenBLAS; measured with
// glibc 2.36 and OpenBLAS 0.3.21, which ends the program when it gets no buffer.
constexpr double kReserved = 144.0 * (1 << 20);

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

// Returns the lowest limit of this process's group and the groups above it, of version 2, whose line of
// proc/self/cgroup is 0::PATH.
double control_group_limit(const fs::path& root) {
  double limit = kUnlimited;
  std::ifstream file(root / "proc/self/cgroup");
  const fs::path top = root / "sys/fs/cgroup";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::")) continue;
    for (fs::path group = fs::path(line.substr(3)).relative_path(); !group.empty();
         group = group.parent_path())
      limit = std::min(limit, leading_number(top / group / "memory.max"));
    limit = std::min(limit, leading_number(top / "memory.max"));
  }
  return limit;
}

double address_space_limit(std::int64_t threads, const fs::path& root) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const double pages = leading_number(root / "proc/self/statm");
  const double taken = pages < kUnlimited ? pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) : 0;
  return std::max(0.0,
                  static_cast<double>(limit.rlim_cur) - taken - kReserved * static_cast<double>(threads));
}

}  // namespace

double available_memory(std::int64_t threads, const fs::path& root) {
  return std::min({machine_memory(root), control_group_limit(root), address_space_limit(threads, root)});
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
