// Sequences as people and programs read them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/data/dataset.h"

namespace thimble {

// A sequence as it is laid out for the model.
struct Sequence {
  std::int64_t index;                // in its split
  std::vector<std::int32_t> tokens;  // without what follows its end
  std::vector<std::int32_t> labels;  // one per token, kIgnore where there is none; or one in all
  std::vector<std::int32_t> source;  // what the encoder reads; empty: there is none
};

// The first `count` sequences of a split in the order in which they are used: those of training as the rows
// of the batches of steps 0, 1, ..., `batch` each, the others by index. Throws DataError when there are
// fewer, and as Dataset::fill_step does.
std::vector<Sequence> first_sequences(const Dataset&, Split, std::int64_t count, std::int64_t batch);

using Names = std::vector<std::string>;  // of tokens

// "a b . c": names with spaces between them, "." for kIgnore.
std::string token_text(const Names&, std::span<const std::int32_t> tokens);

// Lines "input   a b c" and "answer  . x y". Answers stand below the tokens if there are as many. Longer
// lines than `width` go on in further ones.
std::string example_text(const Names&, std::span<const std::int32_t> input,
                         std::span<const std::int32_t> answers, std::size_t width);
// The same of a sequence, after a line "source  d e" if it has one.
std::string example_text(const Names&, const Sequence&, std::size_t width);

// "4 tokens: a b c d", the middle of a vocabulary left out when it takes more than `width` characters.
std::string vocabulary_text(const Names&, std::size_t width);

// A line for each answer, with the positions that it depends on, "0-3 7"; not more than `width` wide. "" for
// a task that says nothing about them.
std::string relevant_text(const TaskConfig&, const Example&, std::size_t width);

// {"input": [0, 1], "target": [-1, 0], "input_text": "a b", "target_text": ". a"}, -1 where there is no
// answer.
Json example_json(const Names&, std::span<const std::int32_t> input, std::span<const std::int32_t> target);
// The same of a sequence, with its index, and "source" and "source_text" if it has one.
Json example_json(const Names&, const Sequence&);

// For each target the positions that it depends on, [] where there is no answer; null for a task that says
// nothing about them.
Json relevant_json(const TaskConfig&, const Example&);

}  // namespace thimble
