// The memory that this process may use, and how much it has used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

namespace thimble {

// The memory that this process may use, and what sets the limit.
struct MemoryLimit {
  enum Kind { machine, control_group, address_space };
  Kind kind = machine;
  double available = std::numeric_limits<double>::infinity();  // bytes
  // For address_space, in bytes: the limit, the part in use, and the part that each thread reserves for its
  // stack, its heap and the buffer of OpenBLAS.
  double limit = 0, taken = 0, reserved = 0;
};

// Returns the lowest of three limits: the available memory of the machine (MemAvailable in proc(5)), the
// limits of the control groups (memory.max in version 2, memory.limit_in_bytes in version 1), and the address
// space that is left for `threads` threads (RLIMIT_AS in getrlimit(2), ulimit -v). Ignores what cannot be
// read. Reads proc/ and sys/ below `root`.
MemoryLimit available_memory(std::int64_t threads = 1, const std::filesystem::path& root = "/");

// Makes malloc return blocks of 1 MiB and more to the system when they are freed. By default glibc's heap
// keeps blocks of up to 32 MiB, in pieces, and a process ends up with a quarter more than it uses.
void return_large_blocks();

// Returns the peak resident set size of this process, in bytes (ru_maxrss in getrusage(2)).
std::int64_t peak_memory();

}  // namespace thimble
