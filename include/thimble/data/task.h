// Tasks: where sequences come from. Adding one is one file, src/data/tasks/NAME.cpp, that defines
// `Task tasks::NAME()`; the build finds it by its file name.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/core/random.h"

namespace thimble {

struct TaskConfig {
  std::string name = "reverse";
  std::int64_t symbols = 10;    // distinct tokens
  std::int64_t length = 16;     // tokens in the longest input
  std::int64_t min_length = 0;  // tokens in the shortest input; 0: every input is `length` long
};

// One input and what should come out, as token numbers in 0 .. symbols-1.
struct Example {
  std::vector<std::int32_t> input;
  std::vector<std::int32_t> target;
};

// A supply of random numbers for one example: the k-th call is a pure function of the key and k.
class Draws {
 public:
  // lane < 2^24 tells apart the draws of one index.
  Draws(const Random& random, std::uint64_t index, std::uint32_t lane)
      : random_(random), index_(index), lane_(lane) {}

  // Uniform in {0, ..., n-1}, 1 <= n < 2^32; the bias of the multiply-shift is below n / 2^64.
  std::int64_t below(std::int64_t n);

 private:
  Random random_;
  std::uint64_t index_;
  std::uint32_t lane_;
  std::uint32_t next_ = 0;
  std::array<std::uint32_t, 4> words_{};  // one Philox call serves two draws
};

struct Task {
  std::string_view summary;                                           // one line for people
  void (*sample)(const TaskConfig&, Draws& draws, Example& example);  // overwrites both of its sequences
  double (*distinct_inputs)(const TaskConfig&);  // how many inputs there are; infinity allowed
};

// Names in alphabetical order.
std::span<const std::string_view> task_names();

// Throws DataError, naming the tasks there are, when there is none of that name.
const Task& find_task(std::string_view name);

// What most tasks start from: `length` (or min_length .. length) independent uniform symbols, and how many
// such sequences exist.
void sample_symbols(const TaskConfig&, Draws&, std::vector<std::int32_t>& out);
double count_symbol_sequences(const TaskConfig&);

}  // namespace thimble
