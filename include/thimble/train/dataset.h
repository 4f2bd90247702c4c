// Batches of a task's examples. Every example is a pure function of (seed, split, index), so that threads,
// shards and resumed runs read the same data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/engine/model_config.h"
#include "thimble/engine/random.h"
#include "thimble/train/batch.h"
#include "thimble/train/permutation.h"
#include "thimble/train/source.h"

namespace thimble {

// Returns the usual layout of examples of that size: sequence for a single target, position for as many
// targets as inputs, next otherwise.
Layout usual_layout(ExampleSize);

// Tokens of a row of a batch, or of its longest rows.
struct RowLengths {
  std::int64_t length = 0, source = 0;

  std::int64_t total() const { return length + source; }
  RowLengths with(const RowLengths& other) const {
    return {std::max(length, other.length), std::max(source, other.source)};
  }
};

// The sequences of a source in three splits, laid out for a model. The rows of data files already have a split, and in it
// the order of the hashes of their text, so that the first N of them are a random sample.
class Dataset {
 public:
  // Throws DataError as model_sizes and split_sizes do.
  Dataset(std::shared_ptr<const Source> source, const DataConfig& data, Layout layout, std::uint64_t seed,
          Outputs outputs = Outputs::answers);
  // Of a generated task.
  Dataset(const TaskConfig& task, const DataConfig& data, Layout layout, std::uint64_t seed)
      : Dataset(generated_source(task, data, seed), data, layout, seed) {}

  const Source& source() const { return *source_; }
  const TaskConfig& config() const { return source_->config(); }
  const Task& task() const { return source_->task(); }
  Layout layout() const { return layout_; }
  const std::vector<std::string>& names() const { return names_; }  // of tokens
  const ModelSizes& sizes() const { return sizes_; }
  std::int64_t vocabulary() const { return sizes_.vocabulary; }        // V
  std::int64_t length() const { return sizes_.length; }                // T, the longest model input
  std::int64_t source_length() const { return sizes_.source_length; }  // S
  std::int32_t unknown_token() const {
    return source_->unknown();
  }  // <unk>; kIgnore: the vocabulary has none
  // Return the output of a model for a token, kIgnore if it has none, and the token of an output.
  std::int32_t output_of(std::int32_t token) const {
    return outputs_.empty() || token == kIgnore ? token : outputs_[static_cast<std::size_t>(token)];
  }
  std::int32_t token_of(std::int32_t output) const {
    return outputs_.empty() || output == kIgnore ? output
                                                 : source_->answers()[static_cast<std::size_t>(output)];
  }
  // Returns the tokens of all outputs; empty: they are the vocabulary.
  std::span<const std::int32_t> output_tokens() const {
    return std::span(source_->answers()).first(static_cast<std::size_t>(sizes_.outputs));
  }
  std::int64_t outputs() const { return sizes_.outputs > 0 ? sizes_.outputs : sizes_.vocabulary; }
  // Beginning- and end-of-sequence tokens of the decoder; Layout::seq2seq only.
  std::int32_t bos_token() const { return static_cast<std::int32_t>(vocabulary() - 2); }
  std::int32_t eos_token() const { return static_cast<std::int32_t>(vocabulary() - 1); }
  // Returns the number of sequences; 0: an unlimited training split, or a task without varied examples.
  std::int64_t size(Split) const;
  // Throws DataError when the split has no rows because its data file is missing or has changed; see Table.
  void require_rows(Split) const;

  // Returns the alignments of the example, or else those of the positions of answers with those that the task states; none
  // for one output per sequence, which has no position.
  std::vector<Alignment> alignments(const Example&) const;
  // Returns the alignments with the candidates that the task states, or all keys, in place of the relevant positions.
  std::vector<Alignment> candidates(const Example&) const;

  // Returns how the sequences of the split coincide with those of training.
  Coincidences shared_with_training(Split split) const {
    return source_->coincidences(split, size(split), data_.train);
  }

  // Returns the index of the training sequence in a row of a step's batch, both from 0, as in fill_step; of a
  // stream, the place of its first token.
  std::int64_t training_index(std::int64_t step, std::int64_t batch, std::int64_t row) const;

  // Sets `out` to example `index` of a split. Throws ShapeError when index is outside 0 .. size-1 (unlimited
  // split: when it is negative), and DataError when the task draws no input of this split.
  void example(Split, std::int64_t index, Example& out) const;

  // Returns the line of the data file that an example comes from, "FILE:LINE"; "" if the task has no files.
  std::string where(Split, std::int64_t index) const;

  // Set `out` to examples first .. first+count-1 of a split, in order, or to those of these indices, reusing
  // its storage. With `fits`, they are padded to the longest of them as far as their lengths are known. Throw as
  // example does.
  void fill(Split, std::int64_t first, std::int64_t count, Batch& out, bool fits = false) const;
  void fill(Split, std::span<const std::int64_t> indices, Batch& out, bool fits = false) const;
  // Sets `out` to examples from elsewhere. Throws DataError when the layout does not suit them.
  void fill(std::span<const Example> examples, Batch& out) const;

  // Sets `out` to rows first .. first+count-1 of the batch of training step `step`, from 0. Every epoch has an order
  // of its own and leaves out what does not fill a batch; of a stream, rows are windows at random places. Rows that a
  // source sorts are in the order of their lengths, and padded to the longest of `out`. Throws DataError when the training
  // set is smaller than one batch, and ShapeError when the rows are not within 0 .. batch-1.
  void fill_step(std::int64_t step, std::int64_t batch, std::int64_t first, std::int64_t count,
                 Batch& out) const;

  // Sets `rows` to the batch of a step of a source that sorts, in the order in which `shards` parts of it are read, as
  // Source::step_order(); the storage of `drawn` is reused. Throws as fill_step does.
  void sorted_rows(std::int64_t step, std::int64_t batch, std::int64_t shards,
                   std::vector<std::int64_t>& rows, std::vector<std::int64_t>& drawn) const;
  // Returns the lengths of a training row, laid out, and of its source.
  RowLengths row_lengths(std::int64_t index) const;

 private:
  template <class Key, class Find>
  std::vector<Alignment> align(const Example&, const Find& find) const;
  // Sets `rows` to rows first .. first+count-1 of a step's batch as they were drawn, by their index in the training split.
  void drawn_rows(std::int64_t step, std::int64_t batch, std::int64_t first, std::int64_t count,
                  std::vector<std::int64_t>& rows) const;
  bool sorts() const { return source_->step_order() != StepOrder::drawn; }
  RowLengths lengths_of(const ExampleSize&) const;
  // Makes room for rows, padded to the longest of those of the split that are `fitted`, or of all if there are none.
  void start(Split split, std::int64_t count, std::span<const std::int64_t> fitted, Batch& out) const;
  void add_source(std::int64_t row, Batch& out) const;  // the input of out.example
  void lay_out(std::int64_t row, Batch& out) const;     // out.example

  std::shared_ptr<const Source> source_;
  DataConfig data_;
  Layout layout_;
  ModelSizes sizes_;
  std::vector<std::string> names_;
  std::vector<std::int32_t> outputs_;  // by token; empty: a token is its own
  Random order_;
  Random draws_;
};

}  // namespace thimble
