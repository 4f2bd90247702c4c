// What a model reads and answers at once. Dataset fills it.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/data/task.h"

namespace thimble {

// How an example becomes model input and labels.
enum class Layout {
  position,  // tokens: input; labels: target, one per position or kIgnore
  sequence,  // tokens: input; labels: the single target
  next,      // tokens: input followed by target without its last token; labels: the next token, on the target
             // only
  seq2seq,   // sources: input; tokens: <begin> followed by target; labels: target followed by <end>
};

struct Batch {
  std::int64_t sequences = 0;                // B
  std::int64_t length = 0;                   // T
  std::vector<std::int32_t> tokens;          // (B, T), 0 after the end of a sequence
  std::vector<std::int32_t> lengths;         // (B), tokens of each sequence
  std::int64_t source_length = 0;            // S; 0: there are no sources
  std::vector<std::int32_t> sources;         // (B, S), 0 after the end of a source
  std::vector<std::int32_t> source_lengths;  // (B), tokens of each source
  std::vector<std::int32_t> labels;          // (B, T) or, per sequence, (B); kIgnore where there is none
  std::vector<std::int32_t> rows;            // where labels are not kIgnore, in order
  std::vector<std::int32_t> row_labels;      // and those labels
  Example example;  // the last row's; kept for its storage, so that filling allocates nothing
};

}  // namespace thimble
