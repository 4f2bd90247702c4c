#include "thimble/train/permutation.h"

#include <map>
#include <vector>

#include "catch.h"

using namespace thimble;

namespace {

std::vector<std::uint64_t> order(std::uint64_t size, std::uint64_t key, std::uint64_t seed = 1) {
  const Permutation permutation(size, Random(seed, Stream::order), key);
  std::vector<std::uint64_t> out(size);
  for (std::uint64_t i = 0; i < size; ++i) out[i] = permutation(i);
  return out;
}

}  // namespace

TEST_CASE("a permutation visits everything once, for any size", "[data]") {
  for (std::uint64_t size = 1; size <= 300; ++size) {
    std::vector<int> visits(size);
    for (std::uint64_t i : order(size, size)) {
      REQUIRE(i < size);
      ++visits[i];
    }
    for (int count : visits) REQUIRE(count == 1);
  }
}

TEST_CASE("a permutation of more than 2^32 stays inside and does not repeat nearby", "[data]") {
  const std::uint64_t size = 5'000'000'000;
  const Permutation permutation(size, Random(1, Stream::order), 0);
  std::map<std::uint64_t, int> seen;
  for (std::uint64_t i = size - 1000; i < size; ++i) {
    REQUIRE(permutation(i) < size);
    ++seen[permutation(i)];
  }
  CHECK(seen.size() == 1000);
}

TEST_CASE("keys and seeds give orders of their own", "[data]") {
  CHECK(order(100, 0) == order(100, 0));
  CHECK(order(100, 0) != order(100, 1));
  CHECK(order(100, 0) != order(100, 0, 2));
}

TEST_CASE("every order of four things is about as likely", "[data]") {
  std::map<std::vector<std::uint64_t>, int> counts;
  const int draws = 24000;
  for (int key = 0; key < draws; ++key) ++counts[order(4, static_cast<std::uint64_t>(key))];
  REQUIRE(counts.size() == 24);
  double chi_squared = 0;
  for (const auto& [_, count] : counts) chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  CHECK(chi_squared < 49.7);  // 23 degrees of freedom: exceeded once in a thousand by chance
}
