// Sequences as text and as JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/train/dataset.h"
#include "thimble/train/json.h"

namespace thimble {

// A sequence as it is laid out for the model.
struct Sequence {
  std::int64_t index;                // in its split
  std::vector<std::int32_t> tokens;  // without padding
  std::vector<std::int32_t> labels;  // tokens: one per token, kIgnore for none; or one per sequence
  std::vector<std::int32_t> source;  // input of the encoder; empty: none
};

// Returns the first `count` sequences of a split in order of use: of the training split, the rows of the
// batches of steps 0, 1, ..., with `batch` rows each, at most those of an epoch; of the others, by index. There
// may be fewer. Throws as Dataset::fill_step does.
std::vector<Sequence> first_sequences(const Dataset&, Split, std::int64_t count, std::int64_t batch);

using Names = std::vector<std::string>;  // of tokens

// Returns lines "input   a b c" and "answer  . x y", aligned in columns if there are as many answers as tokens.
// Wraps lines that are longer than `width`.
std::string example_text(const Names&, std::span<const std::int32_t> input,
                         std::span<const std::int32_t> answers, std::size_t width);
// Returns the lines of a sequence, after a line "source  d e" if it has a source.
std::string example_text(const Names&, const Sequence&, std::size_t width);

// Returns "4 tokens: a b c d", without the middle of the vocabulary if it takes more than `width` characters.
std::string vocabulary_text(const Names&, std::size_t width);

// Returns a line of at most `width` columns for each answer, with the positions that it depends on: "0-3 7",
// or "agent 2, patient 5" if the task has several kinds.
// Returns "" if the task does not state them.
std::string relevant_text(const TaskConfig&, const Example&, std::size_t width);

// Returns {"input": [0, 1], "target": [-1, 0], "input_text": "a b", "target_text": ". a"}, with -1 for no
// answer.
// Texts are joined as the data files of the task are written.
Json example_json(const Names&, std::span<const std::int32_t> input, std::span<const std::int32_t> target,
                  const TaskConfig& = {});
// Returns the object of a sequence, with its index, and with "source" and "source_text" if it has a source.
Json example_json(const Names&, const Sequence&, const TaskConfig& = {});

// Returns the positions that each answer depends on, [] for no answer; null if the task does not state them.
Json relevant_json(const TaskConfig&, const Example&);

}  // namespace thimble
