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

// Returns the lowest limit of this process's groups and the groups above them. A line of proc/self/cgroup is
// number:controllers:path, without controllers in version 2.
double control_group_limit(const fs::path& root) {
  double limit = kUnlimited;
  std::ifstream file(root / "proc/self/cgroup");
  std::string number, controllers, path;
  while (std::getline(file, number, ':') && std::getline(file, controllers, ':') &&
         std::getline(file, path)) {
    const bool version_2 = controllers.empty();
    if (!version_2 && ("," + controllers + ",").find(",memory,") == std::string::npos) continue;
    const fs::path top = root / (version_2 ? "sys/fs/cgroup" : "sys/fs/cgroup/memory");
    const char* name = version_2 ? "memory.max" : "memory.limit_in_bytes";
    fs::path group = fs::path(path).relative_path();
    for (; !group.empty(); group = group.parent_path())
      limit = std::min(limit, leading_number(top / group / name));
    limit = std::min(limit, leading_number(top / name));
  }
  return limit;
}

MemoryLimit address_space_limit(std::int64_t threads, const fs::path& root) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  const double pages = leading_number(root / "proc/self/statm");
  const double taken = pages < kUnlimited ? pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) : 0;
  const auto all = static_cast<double>(limit.rlim_cur);
  return {.kind = MemoryLimit::address_space,
          .available = std::max(0.0, all - taken - kReserved * static_cast<double>(threads)),
          .limit = all,
          .taken = taken,
          .reserved = kReserved};
}

}  // namespace

MemoryLimit available_memory(std::int64_t threads, const fs::path& root) {
  const MemoryLimit machine{.kind = MemoryLimit::machine, .available = machine_memory(root)};
  const MemoryLimit group{.kind = MemoryLimit::control_group, .available = control_group_limit(root)};
  return std::min({machine, group, address_space_limit(threads, root)},
                  [](const MemoryLimit& a, const MemoryLimit& b) { return a.available < b.available; });
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
