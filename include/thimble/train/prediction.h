// What a model answers to each sequence of a split, and a table of that.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thimble/train/dataset.h"
#include "thimble/train/listing.h"

namespace thimble {

// The answer of a model to a sequence. A position without an answer has kIgnore in `target` and in `answer`.
struct Prediction {
  std::vector<std::int32_t> input, target;
  std::vector<std::int32_t> answer;  // the most probable tokens; of an encoder-decoder: greedy decoding
  double log_probability = 0;        // of the whole answer, with its <end> if it was generated and ended
  std::optional<bool> finished{};    // of a generated answer: whether it ended before the longest output
  std::string line{};                // "FILE:LINE"; "": the sequence is not from a file

  bool has_unknown = false;  // whether the target has <unk>, for which no answer is right

  bool right() const { return !has_unknown && answer == target; }
};

// Returns the first line of the table, with its line break: the names of its columns, separated by tabs.
std::string predictions_header();

// Returns a line for each prediction: split, input, target, answer, right, probability, finished, line. Tabs,
// line feeds, carriage returns and backslashes within a cell are written as \t, \n, \r and \\. Tokens are joined as
// the data files of the task are written.
std::string predictions_text(const Names&, const TaskConfig&, Split, std::span<const Prediction>);

}  // namespace thimble
