#include "train/files/hash.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace thimble {

std::uint64_t hash_of(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string hash_digits(std::string_view bytes) { return fmt::format("{:016x}", hash_of(bytes)); }

struct StreamHash::State {
  XXH3_state_t state;
};

StreamHash::StreamHash() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->state); }
StreamHash::~StreamHash() = default;

void StreamHash::add(std::string_view bytes) {
  XXH3_64bits_update(&state_->state, bytes.data(), bytes.size());
}

std::string StreamHash::digits() const { return fmt::format("{:016x}", XXH3_64bits_digest(&state_->state)); }

}  // namespace thimble
