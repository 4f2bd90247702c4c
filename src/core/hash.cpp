#include "thimble/core/hash.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace thimble {

std::uint64_t hash_of(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string hash_digits(std::string_view bytes) { return fmt::format("{:016x}", hash_of(bytes)); }

}  // namespace thimble
