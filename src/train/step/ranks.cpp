#include "thimble/train/ranks.h"

namespace thimble {

Range part_of(std::size_t count, int rank, int size) {
  const auto r = static_cast<std::size_t>(rank), n = static_cast<std::size_t>(size);
  return {count * r / n, count * (r + 1) / n};
}

void Ranks::broadcast(std::string& text) {
  std::size_t length = text.size();
  broadcast(std::span(&length, 1));
  text.resize(length);
  broadcast(std::span(text));
}

Ranks& one_process() {
  static Ranks process(0, 1);
  return process;
}

}  // namespace thimble
