// Sources: where the sequences of a dataset come from. A generated task, pairs of data files, or texts.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "thimble/engine/model_config.h"
#include "thimble/train/batch.h"
#include "thimble/train/task.h"

namespace thimble {

// `varied` is examples in which position and content part: no split of the data, but read like one.
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

// A data file as it was read.
struct DataFile {
  std::string key;   // of TaskConfig: "file", "validation_file", "test_file" or "vocabulary_file"
  std::string path;  // absolute
  std::uint64_t bytes = 0;
  std::string hash{};      // 16 hex digits, XXH3-64 of the bytes; "": it could not be read
  std::string relative{};  // path from the run directory; "": none
  std::string moved{};     // present path, if the file moved along with the run; "": not moved
};

// The order in which training reads the rows of a step.
enum class StepOrder {
  drawn,   // as they were drawn
  sorted,  // by their lengths, and then cut into shards
  dealt,   // by their lengths, dealt out to shards in turn, so that shards cost alike
};

// How sequences of a split coincide with training. Each is counted once, under the first that holds.
struct Coincidences {
  std::int64_t equal_lines = 0;    // their lines, or their inputs as text, are equal
  std::int64_t equal_unknown = 0;  // their tokens are equal after some became <unk>
  std::int64_t equal_windows = 0;  // windows of different documents are equal
  std::int64_t equal_tokens = 0;   // their tokens are equal, of lines that differ in what separates tokens

  std::int64_t total() const { return equal_lines + equal_unknown + equal_windows + equal_tokens; }
};

// A source of sequences. Its functions may be called from any thread.
class Source {
 public:
  virtual ~Source() = default;

  const TaskConfig& config() const { return config_; }
  const Task& task() const { return *task_; }
  const std::vector<std::string>& tokens() const { return tokens_; }  // the vocabulary, by id
  ExampleSize longest() const { return longest_; }               // the longest input and the longest target
  const std::vector<DataFile>& files() const { return files_; }  // empty: sequences are generated
  std::int32_t unknown() const { return unknown_; }              // the id of <unk>; kIgnore: there is none
  std::int32_t boundary() const {
    return boundary_;
  }                                            // the token around each document; kIgnore: there is none
  bool disjoint() const { return disjoint_; }  // whether no input occurs in two splits
  // Returns the tokens that are answers, ascending, if each sequence has one; empty: they are not known.
  const std::vector<std::int32_t>& answers() const { return answers_; }

  // Returns the accuracy of the best constant answer.
  virtual double chance() const = 0;
  // Returns the lowest mean cross entropy that a model can reach on new inputs, nats. Nothing: it is not known.
  virtual std::optional<double> floor() const { return std::nullopt; }
  virtual double distinct_inputs() const = 0;  // of all splits; may be infinity

  // Returns the sizes of the splits that the source can fill. Throws DataError when a list of inputs is too short, and
  // when the training split of a data file is unlimited.
  virtual DataConfig sizes(DataConfig wanted) const = 0;
  // Returns how many rows a data file has for a split; 0 if sequences are generated.
  virtual std::int64_t rows(Split) const { return 0; }
  // Throws DataError, with the file, its problems and the key to set, when a split of data files has no rows.
  virtual void require_rows(Split) const {}

  // Sets the example to sequence `index` of a split. Throws DataError when the task draws none.
  virtual void example(Split, std::int64_t index, Example&) const = 0;
  // Returns the lengths of its input and target, at most; of data files exactly.
  virtual ExampleSize size(Split, std::int64_t /*index*/) const { return longest_; }
  // Returns where it stands in a data file, "FILE:LINE"; "": nowhere.
  virtual std::string where(Split, std::int64_t /*index*/) const { return ""; }
  // Draws an example of Split::varied, as Task::vary, if there are any, for a model of that layout.
  virtual bool varies() const { return true; }
  virtual void vary(SampleRng&, Layout, Example&) const = 0;
  // Returns whether they are shuffled rows, which break rules of order and of positions.
  virtual bool shuffles() const { return false; }
  // Returns what the keys of alignments are to the answer, by Alignment::kind; those of the task, or of a data file.
  const std::vector<std::string_view>& kinds() const { return kinds_; }

  virtual StepOrder step_order() const { return StepOrder::drawn; }
  // Returns the number of places at which training may begin a window; 0: it reads the rows of the training split.
  virtual std::int64_t starts() const { return 0; }
  virtual void example_from(std::int64_t /*start*/, Example&) const {}

  // Returns the layout that suits all sequences; nothing if none does.
  virtual std::optional<Layout> suitable_layout() const = 0;
  // Throws DataError, with the lines and a layout that suits, when sequences cannot be laid out that way.
  virtual void check(Layout) const = 0;

  virtual std::string_view row_name() const { return "sequence"; }
  // Returns a line for each kind of possible mistake in the rows, the first `train` of which are trained on.
  virtual std::vector<std::string> remarks(std::int64_t /*train*/ = kAll) const { return {}; }
  // Returns how the first `count` sequences of a split coincide with the first `train` of training.
  Coincidences coincidences(Split, std::int64_t count, std::int64_t train) const;

 protected:
  using Hashes = std::unordered_set<std::uint64_t>;

  // Adds the hashes of the tokens of the first `count` inputs of a split, until there are `most`.
  void add_inputs(Split, std::int64_t count, double most, Hashes&) const;
  // Returns how training has the input of an example, whose tokens it has.
  virtual std::int64_t Coincidences::*coincidence(Split, std::int64_t /*index*/, const Example&,
                                                  const Hashes& /*texts*/) const {
    return &Coincidences::equal_lines;
  }
  // Returns the hash of the text of an input, before tokens become <unk>; of a generated one, 0.
  virtual std::uint64_t text_hash(Split, std::int64_t /*index*/) const { return 0; }

  explicit Source(TaskConfig config)
      : config_(std::move(config)), task_(&find_task(config_.name)), kinds_(task_->kinds) {}

  TaskConfig config_;
  const Task* task_;
  std::vector<std::string_view> kinds_;
  std::vector<std::string> tokens_;
  ExampleSize longest_{};
  std::vector<DataFile> files_;
  std::vector<std::int32_t> answers_;
  std::int32_t unknown_ = kIgnore, boundary_ = kIgnore;
  bool disjoint_ = true;
};

// Returns the source of a generated task. If the task draws inputs, split_by_hash decides, and an example is drawn
// again until it belongs to the requested split; a task with fewer than 200 distinct inputs is too small for that and
// draws every split from all of them. If the task lists its inputs, the list is permuted by the seed and cut into
// train, validation and test. Throws DataError when the config is out of range, or its task reads data files.
std::shared_ptr<const Source> generated_source(const TaskConfig&, const DataConfig& = {},
                                               std::uint64_t seed = 0);

struct DataRecord;

// Reads the data files that the config names, for a model of that layout. With the record of a trained model, tokens
// keep their ids, and a file that has problems or cannot be read has no rows; Source::require_rows() reports why.
// Throws DataError, with files and lines, also when the model's rows were divided by another rule.
std::shared_ptr<const Source> file_source(const TaskConfig&, Layout, const DataRecord* record = nullptr);

// Reads hypotheses on the heads of a model with that record, layout and task, which says how texts become tokens: JSON Lines
// as Table has them, with "attends", whose targets may be missing. All rows are in the test split, but those with
// "varied": true. Throws DataError, with file and lines, also when no row has one, or one is longer than the model reads.
std::shared_ptr<const Source> hypotheses_source(const std::string& file, const TaskConfig&, Layout,
                                                DataRecord trained);

// Returns Source::sizes(). Throws DataError also when a size is negative.
DataConfig split_sizes(const Source&, const DataConfig& wanted);

// Returns how many tokens there are (V), and in the longest model input (T) and source (S; 0 if the layout has none),
// and how many outputs. The outputs of a model with one per sequence are Source::answers(), unless it keeps those of the
// vocabulary. Throws DataError when the layout does not suit the source.
enum class Outputs { answers, vocabulary };
ModelSizes model_sizes(const Source&, Layout, Outputs = Outputs::answers);

// Returns the model's V tokens: those of the source, then <begin> and <end> for Layout::seq2seq, with as many ' in
// them as it takes to differ from the others.
std::vector<std::string> vocabulary_of(const Source&, Layout);

// Returns the names with which the tokens are shown, see shown_token().
std::vector<std::string> token_names(const Source&, Layout);

}  // namespace thimble
