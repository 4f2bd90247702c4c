// What the program says at the end of memory.
#pragma once

#include <string>
#include <string_view>

namespace thimble::cli {

// What is said where there is no memory for more.
inline constexpr std::string_view kOutOfMemory = "thimble: out of memory\n";

// Returns that memory did not suffice, during which work and for how much, and what of the command can be lowered.
std::string out_of_memory(std::string_view command);

}  // namespace thimble::cli
