// A batch of sequences and labels, filled by Dataset.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "thimble/train/task.h"

namespace thimble {

// How an example becomes model input and labels.
enum class Layout {
  position,  // tokens: input; labels: target, one per position or kIgnore
  sequence,  // tokens: input; labels: the single target
  next,      // tokens: input followed by target without its last token; labels: the next token, on the target
             // only
  seq2seq,   // sources: input; tokens: <begin> followed by target; labels: target followed by <end>
};

// Sequences as a model reads them, with their labels.
struct Batch {
  std::int64_t sequences = 0;  // B
  std::int64_t length = 0;     // T: the longest that the data have, or of documents in training, of these
  std::vector<std::int32_t> tokens;          // (B, T), padded with 0
  std::vector<std::int32_t> lengths;         // (B), tokens of each sequence
  std::int64_t source_length = 0;            // S; 0: no sources
  std::vector<std::int32_t> sources;         // (B, S), padded with 0
  std::vector<std::int32_t> source_lengths;  // (B), tokens of each source
  std::vector<std::int32_t> labels;          // (B, T), or (B) per sequence; kIgnore: no label
  std::vector<std::int32_t> rows;            // indices of labels other than kIgnore, ascending
  std::vector<std::int32_t> row_labels;      // the labels at `rows`
  // row_labels with kIgnore for <unk>, which no prediction is right for; empty: a vocabulary without <unk>.
  std::vector<std::int32_t> countable_labels{};
  // row_labels with kIgnore for answers that can only be guessed; empty: the task does not state them.
  std::vector<std::int32_t> knowable_labels{};

  // Return the tokens of a sequence, of its source, and of the one of these that is not generated, without padding.
  std::span<const std::int32_t> tokens_of(std::int64_t sequence) const {
    return std::span(tokens).subspan(static_cast<std::size_t>(sequence * length), used(lengths, sequence));
  }
  std::span<const std::int32_t> source_of(std::int64_t sequence) const {
    return std::span(sources).subspan(static_cast<std::size_t>(sequence * source_length),
                                      used(source_lengths, sequence));
  }
  std::span<const std::int32_t> input_of(std::int64_t sequence) const {
    return source_length > 0 ? source_of(sequence) : tokens_of(sequence);
  }

  // Reused, so that filling allocates nothing.
  Example example;                      // of the last row
  std::vector<std::int64_t> step_rows;  // by their index in the training split

 private:
  static std::size_t used(const std::vector<std::int32_t>& lengths, std::int64_t sequence) {
    return static_cast<std::size_t>(lengths[static_cast<std::size_t>(sequence)]);
  }
};

}  // namespace thimble
