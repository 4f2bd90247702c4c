#include "thimble/engine/arena.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "catch.h"

using namespace thimble;

TEST_CASE("memory is aligned and no two pieces overlap", "[autograd]") {
  Arena arena;
  struct Piece {
    unsigned char* data;
    std::size_t size;
  };
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::size_t size = i * i * 7 % 20011;
    pieces.push_back({static_cast<unsigned char*>(arena.allocate(size)), size});
    REQUIRE(reinterpret_cast<std::uintptr_t>(pieces.back().data) % 64 == 0);
    std::memset(pieces.back().data, static_cast<int>(i % 251), size);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::size_t j = 0; j < pieces[i].size; ++j) REQUIRE(pieces[i].data[j] == i % 251);
  }
  CHECK(arena.capacity() >= 300 * 64);
}

TEST_CASE("after a rewind one block holds all that was used, and is used again", "[autograd]") {
  constexpr std::size_t kPiece = 700000;
  Arena arena;
  CHECK(arena.capacity() == 0);
  for (int i = 0; i < 5; ++i) arena.allocate(kPiece);  // several blocks
  const std::size_t capacity = 5 * ((kPiece + 63) / 64 * 64);
  CHECK(arena.capacity() >= capacity);
  arena.rewind();
  CHECK(arena.capacity() == capacity);

  std::vector<char*> first;
  for (int i = 0; i < 5; ++i) first.push_back(static_cast<char*>(arena.allocate(kPiece)));
  for (int i = 0; i + 1 < 5; ++i) CHECK(first[i + 1] - first[i] == (kPiece + 63) / 64 * 64);
  for (int round = 0; round < 3; ++round) {
    arena.rewind();
    for (int i = 0; i < 5; ++i) CHECK(arena.allocate(kPiece) == first[i]);
    CHECK(arena.capacity() == capacity);
  }
}

TEST_CASE("a use larger than all before is served, and remembered", "[autograd]") {
  Arena arena;
  arena.allocate(100);
  arena.rewind();
  std::memset(arena.allocate(50'000'000), 1, 50'000'000);
  std::memset(arena.allocate(100), 2, 100);
  arena.rewind();
  const std::size_t capacity = arena.capacity();
  arena.allocate(50'000'000);
  arena.allocate(100);
  CHECK(arena.capacity() == capacity);
}

TEST_CASE("rewinding an arena that gave nothing does nothing", "[autograd]") {
  Arena arena;
  arena.rewind();
  arena.rewind();
  CHECK(arena.capacity() == 0);
}
