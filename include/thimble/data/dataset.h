// Batches of a task's examples, as the model reads them. Everything is a pure function of (seed, split,
// index): nothing is stored, so threads, shards and resumed runs see the same data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/core/random.h"
#include "thimble/data/batch.h"
#include "thimble/data/permutation.h"
#include "thimble/data/task.h"

namespace thimble {

enum class Split { train, validation, test };
std::string_view split_name(Split);

// The split that an input belongs to where a hash of it decides: 80 % train, 10 % validation, 10 % test.
// Independent of the seed, so that runs on several seeds hold out the same.
Split split_by_hash(std::span<const std::int32_t> input);

// Sequences of each split; at most, for a task that does not have as many.
struct DataConfig {
  std::int64_t train = 50000;  // 0 draws fresh ones for ever
  std::int64_t validation = 1000;
  std::int64_t test = 10000;
};

// The layout that suits examples of that size: one label for one target, labels at the positions of as many
// tokens, or else the target as what follows.
Layout usual_layout(ExampleSize);

// T, the tokens of the longest model input. Throws DataError when the task config is out of range, or when
// the task's targets do not suit the layout.
std::int64_t model_length(const TaskConfig&, Layout);

// S, the tokens of the longest source; 0 where the layout has none. Throws as model_length does.
std::int64_t source_length(const TaskConfig&, Layout);

// Names of the model's V tokens: those of the task, and of Layout::seq2seq <begin> and <end>. Throws DataError when
// the task config is out of range.
std::vector<std::string> token_names(const TaskConfig&, Layout);

// Splits share no input. Where inputs are drawn, a hash of the input alone says which split it belongs to (80
// % train, 10 % validation, 10 % test), and an example is drawn again until it belongs to the split asked
// for; a task with fewer than 200 distinct inputs is too small for that, and draws every split from all of
// them. Where they can be listed, the list is put into a seeded order and cut: train, then validation, then
// test. A table says itself which split a row belongs to; of each split the first rows are used.
class Dataset {
 public:
  // Throws DataError as model_length does, when a size is negative, and when a list of inputs is too short.
  Dataset(const TaskConfig& task, const DataConfig& data, Layout layout, std::uint64_t seed);

  const TaskConfig& config() const { return task_; }
  const Task& task() const { return *source_; }
  Layout layout() const { return layout_; }
  const std::vector<std::string>& names() const { return names_; }  // of tokens
  std::int64_t vocabulary() const { return std::ssize(names_); }    // V
  std::int64_t length() const { return length_; }                   // T, the longest model input
  std::int64_t source_length() const { return source_length_; }     // S
  // What the decoder reads first, and what it says last; Layout::seq2seq only.
  std::int32_t bos_token() const { return static_cast<std::int32_t>(vocabulary() - 2); }
  std::int32_t eos_token() const { return static_cast<std::int32_t>(vocabulary() - 1); }
  std::int64_t size(Split) const;  // sequences; train 0: endless
  // Throws DataError when the split has none because its data file has gone or changed; see Table.
  void require_rows(Split) const;
  bool disjoint() const { return disjoint_; }  // whether no input occurs in two splits

  // Which positions of the model's input the task names as those that the answer at another one depends on,
  // with Layout::seq2seq, those of the source; none for one output per sequence, which no position asks for.
  struct Alignment {
    std::int32_t query, key;
  };
  std::vector<Alignment> alignments(const Example&) const;

  // How many sequences of the split have an input that training also has.
  std::int64_t shared_with_training(Split) const;

  // The training sequence in that row of the batch of a step, both from 0, as fill_step lays them out.
  std::int64_t training_index(std::int64_t step, std::int64_t batch, std::int64_t row) const;

  // Example `index` of a split. Throws ShapeError when index is outside 0 .. size-1 (endless: negative), and
  // DataError when the task does not come up with an input of this split.
  void example(Split, std::int64_t index, Example& out) const;

  // Examples first .. first+count-1 of a split, in order; throws as example does. Reuses the storage of
  // `out`.
  void fill(Split, std::int64_t first, std::int64_t count, Batch& out) const;

  // Rows first .. first+count-1 of the batch of training step `step` (from 0), every epoch in an order of its
  // own, an incomplete last batch left out. Throws DataError when the training set is smaller than one batch,
  // ShapeError when the rows are not within 0 .. batch-1.
  void fill_step(std::int64_t step, std::int64_t batch, std::int64_t first, std::int64_t count,
                 Batch& out) const;

 private:
  void draw(Split, std::int64_t index, Example& out) const;
  Permutation epoch_order(std::int64_t step, std::int64_t batch) const;
  void start(std::int64_t count, Batch& out) const;
  void add_source(std::int64_t row, Batch& out) const;  // the input of out.example
  void add_row(Split, std::int64_t index, std::int64_t row, Batch& out) const;

  TaskConfig task_;
  const Task* source_;
  DataConfig data_;
  Layout layout_;
  std::int64_t length_, source_length_;
  std::vector<std::string> names_;
  bool disjoint_;
  Random draws_, order_;
  std::array<std::int64_t, 3> starts_;  // of the splits, in a list of inputs
  std::optional<Permutation> inputs_;   // the order of a list of inputs that is no table
};

}  // namespace thimble
