// Hashes that identify content and detect damage; they are not cryptographic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace thimble {

// Returns the XXH3-64 of the bytes.
std::uint64_t hash_of(std::string_view bytes);

// Returns hash_of() as 16 hexadecimal digits.
std::string hash_digits(std::string_view bytes);

}  // namespace thimble
