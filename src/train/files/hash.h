// Hashes that identify content and detect damage; they are not cryptographic.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace thimble {

// Returns the XXH3-64 of the bytes.
std::uint64_t hash_of(std::string_view bytes);

// Returns hash_of() as 16 hexadecimal digits.
std::string hash_digits(std::string_view bytes);

// The XXH3-64 of bytes that come in pieces.
class StreamHash {
 public:
  StreamHash();
  ~StreamHash();
  StreamHash(const StreamHash&) = delete;
  StreamHash& operator=(const StreamHash&) = delete;

  void add(std::string_view bytes);
  std::string digits() const;  // of all bytes so far, as hash_digits()

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thimble
