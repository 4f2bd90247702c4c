// Batches of a task's examples. Every example is a pure function of (seed, split, index), so that threads,
// shards and resumed runs read the same data.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/engine/model_config.h"
#include "thimble/engine/random.h"
#include "thimble/train/batch.h"
#include "thimble/train/permutation.h"
#include "thimble/train/task.h"

namespace thimble {

// `varied` is the examples of Task::vary: no split of the data, but read like one.
enum class Split { train, validation, test, varied };
std::string_view split_name(Split);  // "train", "validation", "test", "varied"

// Returns the split that the hash of an input chooses: 80 % train, 10 % validation, 10 % test. It does not
// depend on the seed, so that runs with several seeds hold out the same inputs.
Split split_of_hash(std::uint64_t hash);
Split split_by_hash(std::span<const std::int32_t> input);

inline constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();  // every line of a split

// Sequences in each split; fewer if the task does not have as many. A data file has kAll unless the config
// says otherwise.
struct DataConfig {
  std::int64_t train = 50000;  // 0: unlimited, generated as training goes on
  std::int64_t validation = 1000;
  std::int64_t test = 10000;

  std::int64_t& size(Split split) {
    return split == Split::train ? train : split == Split::validation ? validation : test;
  }
  std::int64_t size(Split split) const { return DataConfig(*this).size(split); }
};

// Returns the sizes of the splits that the task can fill. Throws DataError when a size is negative, when a
// list of inputs is too short, and when the training split of a data file is unlimited.
DataConfig split_sizes(const TaskConfig& config, DataConfig data);

// Returns the usual layout of examples of that size: sequence for a single target, position for as many
// targets as inputs, next otherwise.
Layout usual_layout(ExampleSize);

// Returns how many tokens there are (V), and in the longest model input (T) and source (S; 0 if the layout has none).
// Throws DataError when the task config is out of range, or when the layout does not suit the task's targets.
ModelSizes model_sizes(const TaskConfig&, Layout);

// Returns the model's V tokens: those of the task, then <begin> and <end> for Layout::seq2seq, with as many ' in
// them as it takes to differ from the others. Throws DataError when the task config is out of range.
std::vector<std::string> vocabulary_of(const TaskConfig&, Layout);

// Returns the names with which the tokens are shown, see shown_token(). Throws as vocabulary_of does.
std::vector<std::string> token_names(const TaskConfig&, Layout);

// The examples of a task in three splits, which share no input. If the task draws inputs, split_by_hash
// decides, and an example is drawn again until it belongs to the requested split; a task with fewer than 200
// distinct inputs is too small for that and draws every split from all of them. If the task lists its inputs,
// the list is permuted by the seed and cut into train, validation and test. The rows of a table already have
// a split, and in it the order of the hashes of their text, so that the first N of them are a random sample.
class Dataset {
 public:
  // Throws DataError as model_sizes and split_sizes do.
  Dataset(const TaskConfig& task, const DataConfig& data, Layout layout, std::uint64_t seed);

  const TaskConfig& config() const { return task_; }
  const Task& task() const { return *source_; }
  Layout layout() const { return layout_; }
  const std::vector<std::string>& names() const { return names_; }  // of tokens
  const ModelSizes& sizes() const { return sizes_; }
  std::int64_t vocabulary() const { return sizes_.vocabulary; }        // V
  std::int64_t length() const { return sizes_.length; }                // T, the longest model input
  std::int64_t source_length() const { return sizes_.source_length; }  // S
  std::int32_t unknown_token() const { return unknown_; }  // <unk>; kIgnore: the vocabulary has none
  // Beginning- and end-of-sequence tokens of the decoder; Layout::seq2seq only.
  std::int32_t bos_token() const { return static_cast<std::int32_t>(vocabulary() - 2); }
  std::int32_t eos_token() const { return static_cast<std::int32_t>(vocabulary() - 1); }
  // Returns the number of sequences; 0: an unlimited training split, or a task without varied examples.
  std::int64_t size(Split) const;
  // Throws DataError when the split has no rows because its data file is missing or has changed; see Table.
  void require_rows(Split) const;
  bool disjoint() const { return disjoint_; }  // whether no input occurs in two splits

  // A position of an answer in the model's input, and one that the answer depends on: in the input, or in the
  // source with Layout::seq2seq.
  struct Alignment {
    std::int32_t query, key;
    std::int32_t kind = 0;  // index in Task::kinds
  };
  // Returns the alignments that the task states; none for one output per sequence, which has no position.
  std::vector<Alignment> alignments(const Example&) const;
  // Returns the alignments with the candidates that the task states, in place of the relevant positions.
  std::vector<Alignment> candidates(const Example&) const;

  // Returns how many sequences of the split have an input that also occurs in training.
  std::int64_t shared_with_training(Split) const;

  // Returns the index of the training sequence in a row of a step's batch, both from 0, as in fill_step; of a
  // stream, the place of its first token.
  std::int64_t training_index(std::int64_t step, std::int64_t batch, std::int64_t row) const;

  // Sets `out` to example `index` of a split. Throws ShapeError when index is outside 0 .. size-1 (unlimited
  // split: when it is negative), and DataError when the task draws no input of this split.
  void example(Split, std::int64_t index, Example& out) const;

  // Returns the line of the data file that an example comes from, "FILE:LINE"; "" if the task has no files.
  std::string where(Split, std::int64_t index) const;

  // Set `out` to examples first .. first+count-1 of a split, in order, or to those of these indices, reusing
  // its storage. Throw as example does.
  void fill(Split, std::int64_t first, std::int64_t count, Batch& out) const;
  void fill(Split, std::span<const std::int64_t> indices, Batch& out) const;

  // Sets `out` to rows first .. first+count-1 of the batch of training step `step`, from 0. Every epoch has
  // an order of its own and drops an incomplete last batch; of a stream, rows are windows at random places. The
  // documents of a batch are in the order of their lengths, and padded to the longest of `out`. Throws DataError when the training set is smaller
  // than one batch, and ShapeError when the rows are not within 0 .. batch-1.
  void fill_step(std::int64_t step, std::int64_t batch, std::int64_t first, std::int64_t count,
                 Batch& out) const;

 private:
  void draw(Split, std::int64_t index, Example& out) const;
  // Returns the place of an example among the inputs that the task lists.
  std::int64_t listed(Split, std::int64_t index) const;
  template <class Key, class Find>
  std::vector<Alignment> align(const Example&, const Find& find) const;
  Permutation epoch_order(std::int64_t step, std::int64_t batch) const;
  // Sets `rows` to rows first .. first+count-1 of a step's batch, by their index in the training split.
  void step_rows(std::int64_t step, std::int64_t batch, std::int64_t first, std::int64_t count,
                 std::vector<std::int64_t>& rows) const;
  void start(std::int64_t count, std::int64_t length, Batch& out) const;
  void add_source(std::int64_t row, Batch& out) const;  // the input of out.example
  void add_row(Split, std::int64_t index, std::int64_t row, Batch& out) const;
  void lay_out(std::int64_t row, Batch& out) const;  // out.example

  TaskConfig task_;
  const Task* source_;
  DataConfig data_;
  Layout layout_;
  ModelSizes sizes_;
  std::vector<std::string> names_;
  std::int32_t unknown_;
  std::int64_t places_;  // of training's windows in a stream; 0: it reads rows
  bool sorts_;           // whether training sorts the rows of a batch by their lengths
  bool disjoint_;
  Random draws_, order_;
  std::array<std::int64_t, 3> starts_;  // of the splits, in a list of inputs
  std::optional<Permutation> inputs_;   // order of listed inputs, unless they are rows of a table
};

}  // namespace thimble
