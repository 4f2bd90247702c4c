// Hashes that tell content apart and show damage; they protect against nobody.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace thimble {

// XXH3-64 of the bytes.
std::uint64_t hash_of(std::string_view bytes);

// The same as 16 hexadecimal digits.
std::string hash_digits(std::string_view bytes);

}  // namespace thimble
