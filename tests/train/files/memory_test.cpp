#include "train/files/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "catch.h"
#include "temporary_directory.h"

using namespace thimble;

namespace {

// A root directory with files of the test.
struct Machine {
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  double available() const { return available_memory(root.path()); }

  TemporaryDirectory root;
};

constexpr double kMiB = 1 << 20;

}  // namespace

TEST_CASE("where nothing can be read, nothing limits memory", "[files]") {
  const Machine machine;
  CHECK(std::isinf(machine.available()));
  machine.write("proc/meminfo", "MemTotal: 5 kB\n");
  machine.write("proc/self/cgroup", "no colons\n0::/gone\n7:memory:/gone\n");
  machine.write("sys/fs/cgroup/memory.max", "max\n");
  CHECK(std::isinf(machine.available()));
}

TEST_CASE("what the machine has left limits memory", "[files]") {
  const Machine machine;
  machine.write("proc/meminfo",
                "MemTotal:       8192 kB\nMemFree:   1 kB\nMemAvailable:   2048 kB\nX: 1 kB\n");
  CHECK(machine.available() == 2 * kMiB);
}

TEST_CASE("the least that control groups have left counts", "[files]") {
  const Machine machine;
  machine.write("proc/self/cgroup", "9:cpu,cpuacct:/a\n0::/user/session\n");
  machine.write("sys/fs/cgroup/user/memory.max", "5242880\n");
  CHECK(machine.available() == 5 * kMiB);
  machine.write("sys/fs/cgroup/user/session/memory.max", "4194304\n");
  CHECK(machine.available() == 4 * kMiB);
  machine.write("sys/fs/cgroup/user/session/memory.current", "2097152\n");
  CHECK(machine.available() == 2 * kMiB);
  // What a group holds of files can be taken from it.
  machine.write("sys/fs/cgroup/user/session/memory.stat",
                "anon 1\nactive_file 524288\ninactive_file 524288\n");
  CHECK(machine.available() == 3 * kMiB);
  machine.write("proc/meminfo", "MemAvailable:   2048 kB\n");
  CHECK(machine.available() == 2 * kMiB);
}

TEST_CASE("a limit of the process counts from what it has", "[files]") {
  const Machine machine;
  machine.write("proc/self/statm", "9999 1 1 1 0 256 0\n");
  rlimit before{};
  ::getrlimit(RLIMIT_DATA, &before);
  rlimit lower = before;
  lower.rlim_cur = rlim_t{1} << 40;
  ::setrlimit(RLIMIT_DATA, &lower);
  CHECK(machine.available() == (1 << 20) * kMiB - 256.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  ::setrlimit(RLIMIT_DATA, &before);
}

TEST_CASE("the peak of memory rises with what is used", "[files]") {
  const std::int64_t before = peak_memory();
  CHECK(before > 0);
  const std::vector<char> used(static_cast<std::size_t>(before) + 32 * (1 << 20), 'x');
  CHECK(peak_memory() >= static_cast<std::int64_t>(used.size()));
}
