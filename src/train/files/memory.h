// The memory that this process may use, and how much it has used.
#pragma once

#include <cstdint>
#include <filesystem>

namespace thimble {

// Returns the bytes that this process may still use: the least of what the machine has left (MemAvailable in proc(5)), what
// its control groups have left (memory.max of version 2, without their own use but for the cache of files), and what limits
// of the process leave (RLIMIT_DATA, RLIMIT_AS). Ignores what cannot be read. Reads proc/ and sys/ below `root`.
double available_memory(const std::filesystem::path& root = "/");

// Limits the data of this process (RLIMIT_DATA) to what it has, its share of what is available, where so many processes
// share that, and the stacks of as many threads as there are cores, so that an allocation fails before the system ends the
// process. Keeps a lower limit. Does nothing under sanitizers.
void limit_data(std::int64_t processes);

// Makes malloc return blocks of 1 MiB and more to the system when they are freed. By default glibc's heap
// keeps blocks of up to 32 MiB, in pieces, and a process ends up with a quarter more than it uses.
void return_large_blocks();

// Returns the peak resident set size of this process, in bytes (ru_maxrss in getrusage(2)).
std::int64_t peak_memory();

}  // namespace thimble
