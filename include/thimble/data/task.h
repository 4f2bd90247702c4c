// Tasks: where sequences come from. Adding one is one file, src/data/tasks/NAME.cpp, that defines
// `Task tasks::NAME()`; the build finds it by its file name.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/core/random.h"

namespace thimble {

class Table;

// Each task reads some of these, see Task::keys; what they mean for it is in its definition.
struct TaskConfig {
  std::string name = "reverse";
  std::int64_t symbols = 10;    // distinct tokens that inputs are made of
  std::int64_t length = 16;     // tokens in the longest input
  std::int64_t min_length = 0;  // tokens in the shortest input; 0: every input is `length` long
  std::int64_t offset = 1;      // positions to shift by
  std::int64_t pairs = 4;       // key-value pairs of an input
  std::int64_t depth = 4;       // deepest nesting of brackets
  // Absolute paths; "": none.
  std::string file{};             // JSON Lines or tab-separated: input and target sequences
  std::string validation_file{};  // the same for the other splits
  std::string test_file{};
  std::string vocabulary_file{};         // the tokens there are
  std::shared_ptr<const Table> table{};  // what is in them; null until open_config opens them
};

inline constexpr std::int32_t kIgnore = -1;  // the answer of a position that is not asked for one

// One input and what should come out, as token numbers below the size of the vocabulary.
struct Example {
  std::vector<std::int32_t> input;
  std::vector<std::int32_t> target;  // kIgnore where no answer is asked for
};

// A supply of random numbers for one example: the k-th call is a pure function of the key and k.
class SampleRng {
 public:
  // lane < 2^24 tells apart the draws of one index.
  SampleRng(const Random& random, std::uint64_t index, std::uint32_t lane)
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

// Tokens of the longest input and of its target.
struct ExampleSize {
  std::int64_t input, target;
};

// What a task is. Functions may be called with any config that `check` accepts, `size` with any in range,
// from any thread; `sample` and `at` allocate nothing once the example has room.
struct Task {
  std::string_view summary;            // one line for people
  std::string_view definition;         // exactly what is asked, what the keys mean, and the source
  std::vector<std::string_view> keys;  // of TaskConfig that it reads; setting another one is an error
  bool causal = false;                 // answers stand further on in the input, so the mask must hide them
  bool sparse = false;                 // some positions are not asked for an answer; never in next layout

  // Throws DataError when the keys do not suit each other. Null: their ranges are enough.
  void (*check)(const TaskConfig&) = nullptr;
  std::vector<std::string> (*tokens)(const TaskConfig&);  // the vocabulary, readable
  ExampleSize (*size)(const TaskConfig&);

  // Overwrites both sequences of the example. Either inputs are drawn, or there are so few that each can be
  // asked for, index 0 .. distinct_inputs - 1, and splits share them out; the other one is null.
  void (*sample)(const TaskConfig&, SampleRng&, Example&) = nullptr;
  void (*at)(const TaskConfig&, std::int64_t index, Example&) = nullptr;
  double (*distinct_inputs)(const TaskConfig&);  // how many inputs there are; infinity allowed
  // The table whose rows `at` gives, and which says their splits. Null: there is none.
  const Table& (*table)(const TaskConfig&) = nullptr;

  // Share of right answers of the best guess that is the same for every input and position.
  double (*chance)(const TaskConfig&);
  // Lowest mean cross entropy of an answer that any model can reach on fresh inputs, nats. Null: unknown.
  double (*floor)(const TaskConfig&) = nullptr;
  std::vector<std::string_view> special{};  // tokens that mark something and are no content, such as "="
  // The input positions that answer `i` of the example depends on, appended to `keys`: where a head that
  // solves the task should look. In next-token layout position input.size() + k is target k. Null: nowhere in
  // particular.
  void (*relevant)(const TaskConfig&, const Example&, std::size_t i,
                   std::vector<std::int32_t>& keys) = nullptr;
};

// Names in alphabetical order.
std::span<const std::string_view> task_names();

// Throws DataError, naming the tasks there are, when there is none of that name.
const Task& find_task(std::string_view name);

// The task of that config. Throws DataError when there is none, when a key that it reads is out of range, or
// when its check fails.
const Task& checked_task(const TaskConfig&);

// The numbers of the task's special tokens, in its vocabulary.
std::vector<std::int32_t> special_tokens(const TaskConfig&);

// What several tasks are made of.
namespace tasks {

// `length`, or uniform in min_length .. length.
std::int64_t sample_length(const TaskConfig&, SampleRng&);
// That many independent uniform symbols, and how many such sequences exist.
void sample_symbols(const TaskConfig&, SampleRng&, std::vector<std::int32_t>& out);
double count_symbol_sequences(const TaskConfig&);

std::vector<std::string> number_tokens(const TaskConfig&);   // "0", "1", ... `symbols` of them
std::vector<std::string> letter_tokens(const TaskConfig&);   // "a", "b", ...; "s0", "s1", ... if more than 26
std::vector<std::string> opening_tokens(const TaskConfig&);  // "(", "[", "{", "<"; "(0", "(1", ... if more
ExampleSize one_per_position(const TaskConfig&);             // {length, length}
ExampleSize one_per_sequence(const TaskConfig&);             // {length, 1}
double one_in_symbols(const TaskConfig&);                    // 1 / symbols
double zero(const TaskConfig&);

}  // namespace tasks

}  // namespace thimble
