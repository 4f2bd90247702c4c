// The memory that this process may use, and how much it has used.
#pragma once

#include <cstdint>
#include <filesystem>

namespace thimble {

// Returns the bytes that this process may still use: the least of the available memory of the machine (MemAvailable in
// proc(5)), the limits of its control groups (memory.max, version 2), and the address space that `threads` threads leave
// of RLIMIT_AS (ulimit -v), as each reserves some for its stack, its heap and the buffer of OpenBLAS. Ignores what cannot
// be read. Reads proc/ and sys/ below `root`.
double available_memory(std::int64_t threads = 1, const std::filesystem::path& root = "/");

// Makes malloc return blocks of 1 MiB and more to the system when they are freed. By default glibc's heap
// keeps blocks of up to 32 MiB, in pieces, and a process ends up with a quarter more than it uses.
void return_large_blocks();

// Returns the peak resident set size of this process, in bytes (ru_maxrss in getrusage(2)).
std::int64_t peak_memory();

}  // namespace thimble
