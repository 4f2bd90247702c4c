// How much memory there is for this process, and how much it has used.
#pragma once

#include <cstdint>
#include <filesystem>

namespace thimble {

// Bytes that this process may use: the least of what the machine has left (MemAvailable in proc(5)), the
// limits of its control groups (memory.max in version 2, memory.limit_in_bytes in version 1) and what its
// limit on address space leaves (RLIMIT_AS in getrlimit(2)) when `threads` compute. What cannot be read
// limits nothing; infinity when there is no limit. proc/ and sys/ are looked for in `root`.
double available_memory(std::int64_t threads = 1, const std::filesystem::path& root = "/");

// The most bytes that this process has had in memory at once (ru_maxrss in getrusage(2)).
std::int64_t peak_memory();

}  // namespace thimble
