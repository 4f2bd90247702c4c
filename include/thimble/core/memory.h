// How much memory there is for this process, and how much it has used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

namespace thimble {

// How much memory this process may use, and what sets the limit.
struct MemoryLimit {
  enum Kind { machine, control_group, address_space };
  Kind kind = machine;
  double available = std::numeric_limits<double>::infinity();  // bytes
  // Of a limit on address space, in bytes: the limit, what is taken of it, and what a thread reserves for its
  // stack, its heap and the buffer of OpenBLAS, most of which it never uses.
  double limit = 0, taken = 0, reserved = 0;
};

// The lowest of what the machine has left (MemAvailable in proc(5)), the limits of the control groups
// (memory.max in version 2, memory.limit_in_bytes in version 1) and what the limit on address space leaves
// (RLIMIT_AS in getrlimit(2), ulimit -v) when `threads` compute. What cannot be read limits nothing. proc/
// and sys/ are read from `root`.
MemoryLimit available_memory(std::int64_t threads = 1, const std::filesystem::path& root = "/");

// Makes malloc hand out large blocks that go back to the system when they are freed. By default glibc's heap
// keeps blocks of up to 32 MiB, in pieces, and a process ends up with a quarter more than it uses.
void return_large_blocks();

// The most bytes that this process has had in memory at once (ru_maxrss in getrusage(2)).
std::int64_t peak_memory();

}  // namespace thimble
