// Tasks: where sequences come from. Adding one is one file, src/train/data/tasks/NAME.cpp, that defines
// `Task tasks::NAME::task()`; the build finds it by its file name.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/engine/random.h"
#include "thimble/train/tokenization.h"

namespace thimble {

class FileSource;
struct DataRecord;

enum class TableFormat { by_name, tsv, csv, jsonl, conllu, conll };  // by_name: by the extension of the file
enum class VocabularyOf { all, training };  // the rows whose tokens are the vocabulary

// How the lines of data files become rows of tokens; see table.h.
struct TableOptions {
  TableFormat format = TableFormat::by_name;
  // Columns, joined by commas: numbers from 0, names in the header, fields of CoNLL-U, or keys of JSON. "": the
  // usual ones of the format.
  std::string input{}, target{};
  bool header = false;      // skip the first line
  std::string separator{};  // where a line is cut; "": tabs, or commas in CSV
  ColumnTokens input_tokens{}, target_tokens{};
  std::string no_answer = "_";  // marks a position without an answer in a target; "": nothing does
  VocabularyOf vocabulary = VocabularyOf::all;
  std::int64_t min_count = 0;   // rarer tokens become <unk>; 0: 1, or 2 with VocabularyOf::training
  std::int64_t max_tokens = 0;  // rows with longer sequences are left out; 0: none
  bool skip_empty = false;      // rows with an empty field are left out

  // Returns how often a token must occur to be in the vocabulary.
  std::int64_t least_count() const {
    return min_count > 0 ? min_count : vocabulary == VocabularyOf::training ? 2 : 1;
  }
  // Returns whether the vocabulary has <unk> for the tokens that are not in it.
  bool has_unknown() const { return vocabulary == VocabularyOf::training || least_count() > 1; }

  bool operator==(const TableOptions&) const = default;
};

// A document a line; one text without ends; documents that blank lines separate; documents that begin at lines which
// begin with TableOptions::separator.
enum class TextForm { lines, stream, paragraphs, records };
enum class LongDocuments { several, first };  // rows of a document that is longer than one

// How a text becomes rows of tokens; see text.h.
struct TextOptions {
  TextForm documents = TextForm::lines;
  Tokenization tokens = Tokenization::characters;
  LongDocuments longer = LongDocuments::several;
  // Tokens from a window of validation and test to the next one; what two have in common is predicted in the first
  // of them, and context in the other. 0: length.
  std::int64_t stride = 0;
  std::string split{};  // shares of a stream that are the splits, "0.8,0.1,0.1"; "": those

  bool operator==(const TextOptions&) const = default;
};

// The keys of all tasks. Each task reads some of them, see Task::keys, and its definition explains them.
struct TaskConfig {
  std::string name = "reverse";
  std::int64_t symbols = 10;    // number of distinct symbols in inputs
  std::int64_t length = 16;     // tokens in the longest input
  std::int64_t min_length = 0;  // tokens in the shortest input; 0: every input is `length` long
  std::int64_t offset = 1;      // positions to shift by
  std::int64_t pairs = 4;       // key-value pairs in an input
  std::int64_t depth = 4;       // maximum nesting depth of brackets
  // Absolute paths; "": none.
  std::string file{};             // JSON Lines or tab-separated: input and target sequences
  std::string validation_file{};  // files of the other splits
  std::string test_file{};
  std::string vocabulary_file{};  // a token on each line
  TableOptions options{};         // how these files are read
  TextOptions text{};

  bool operator==(const TaskConfig&) const = default;
  std::int64_t shortest() const { return min_length > 0 ? min_length : length; }
  // Returns how the tokens of an input, and of a target, are joined to a text.
  Tokenization input_tokens() const;
  Tokenization target_tokens() const;
};

inline constexpr std::int32_t kIgnore = -1;  // the label of a position without an answer

// A query and a key that it should attend to: positions in the model's input, keys with Layout::seq2seq in the source.
struct Alignment {
  std::int32_t query, key;
  std::int32_t kind = 0;  // index in Source::kinds()
};

// An input and its target, as token ids.
struct Example {
  std::vector<std::int32_t> input;
  std::vector<std::int32_t> target;  // kIgnore: no answer at this position
  std::vector<Alignment> attends{};  // of a data file that states them; the task states others
};

// A position of the input that an answer depends on.
struct Relevant {
  std::int32_t key;
  std::int32_t kind = 0;  // index in Task::kinds

  bool operator==(const Relevant&) const = default;
};

// A random number generator for one example: its k-th number is a pure function of the key and k.
class SampleRng {
 public:
  // `lane` < 2^24 distinguishes generators of one index.
  SampleRng(const Random& random, std::uint64_t index, std::uint32_t lane)
      : random_(random), index_(index), lane_(lane) {}

  // Returns a uniform number in 0 .. n-1, 1 <= n < 2^32; the bias of the multiply-shift is below n / 2^64.
  std::int64_t below(std::int64_t n);

 private:
  Random random_;
  std::uint64_t index_;
  std::uint32_t lane_;
  std::uint32_t next_ = 0;
  std::array<std::uint32_t, 4> words_{};  // one Philox call serves two draws
};

// Tokens of the longest input and of the longest target.
struct ExampleSize {
  std::int64_t input, target;
};

// A task. Its functions may be called from any thread with any config that `check` accepts, `size` with any
// in range; `sample` and `at` allocate nothing once the example has enough capacity.
struct Task {
  std::string_view summary{};            // one line
  std::string_view definition{};         // exact rule, meaning of the keys, and source
  std::vector<std::string_view> keys{};  // of TaskConfig that the task reads; setting others is an error
  bool causal = false;                   // answers occur later in the input, so the mask must be causal
  bool sparse = false;                   // some positions have no answer; not possible in next layout
  bool predicts_next = false;  // every answer is the next token of the input, so models can go on with it

  // Throws DataError when the values of keys break a rule together. Null: there is no such rule.
  void (*check)(const TaskConfig&) = nullptr;
  std::vector<std::string> (*tokens)(const TaskConfig&) = nullptr;  // names of the vocabulary, by id
  ExampleSize (*size)(const TaskConfig&) = nullptr;

  // Overwrite both sequences of the example. A task either draws its inputs with `sample`, or lists them with
  // `at`, index 0 .. distinct_inputs - 1, to be divided among the splits; the other function is null.
  void (*sample)(const TaskConfig&, SampleRng&, Example&) = nullptr;
  void (*at)(const TaskConfig&, std::int64_t index, Example&) = nullptr;
  double (*distinct_inputs)(const TaskConfig&) = nullptr;  // number of inputs; may be infinity
  // Reads the data files, with the record of a trained model if it is not null; the functions of generated sequences are
  // null then. Null: the task generates its sequences.
  std::shared_ptr<FileSource> (*open)(const TaskConfig&, const DataRecord* trained) = nullptr;

  // Returns the accuracy of the best constant answer.
  double (*chance)(const TaskConfig&) = nullptr;
  // Returns the lowest mean cross entropy of an answer that a model can reach on new inputs, nats: 0 if inputs
  // determine the answers. Null: unknown.
  double (*floor)(const TaskConfig&) = [](const TaskConfig&) { return 0.0; };
  // Returns whether the answer at position `i` of an input, which may be any tokens, follows from the input; others can only be
  // guessed or, in a sparse task, are not asked for. Null: all follow where floor is 0, and elsewhere it is not stated.
  bool (*knowable)(const TaskConfig&, std::span<const std::int32_t> input, std::size_t i) = nullptr;
  std::string_view unknowable = "no answer is asked for there";  // why others do not follow
  std::vector<std::string_view> special{};  // tokens that are marks, not content, such as "="
  // Appends the input positions that answer `i` of the example depends on to `keys`: those that a head which
  // solves the task should attend to. In next layout, position input.size() + k is target k. Null: not
  // stated.
  void (*relevant)(const TaskConfig&, const Example&, std::size_t i, std::vector<Relevant>& keys) = nullptr;
  std::vector<std::string_view> kinds{};  // what these positions are to the answer: "agent", "patient"
  // How many of the kinds, the last ones, are not summed into the score task_target: what an answer depends on as well.
  std::size_t other_kinds = 0;
  // Appends the positions of the same class as the relevant ones, those included: what a head attends to that
  // finds the class and not the member. Null: the position of an answer determines the relevant positions, as
  // in reversal, so that attending to them is a pattern of positions and not of content.
  void (*candidates)(const TaskConfig&, const Example&, std::size_t i,
                     std::vector<std::int32_t>& keys) = nullptr;
  // Draws an example of at most `size` in which position and content part, so that a head that follows the
  // one misses the other: other lengths, a random prefix, other distractors. It belongs to no split. Null:
  // there is none, as no key can be elsewhere.
  void (*vary)(const TaskConfig&, SampleRng&, Example&) = nullptr;
};

// Returns the names of all tasks in alphabetical order.
std::span<const std::string_view> task_names();

// Returns the task of that name. Throws DataError, with the names of all tasks, when there is none.
const Task& find_task(std::string_view name);

// Returns the task of the config. Throws DataError when there is none, when a key that it reads is out of
// range, or when its check fails.
const Task& checked_task(const TaskConfig&);

// Returns the ids of the task's special tokens.
std::vector<std::int32_t> special_tokens(const TaskConfig&);

// Parts that several tasks share.
namespace tasks {

// Returns `length`, or a uniform number in min_length .. length.
std::int64_t sample_length(const TaskConfig&, SampleRng&);
// Sets `out` to sample_length independent uniform symbols.
void sample_symbols(const TaskConfig&, SampleRng&, std::vector<std::int32_t>& out);
// Sets `out` to sample_length independent symbols, uniform over a random range of symbols.
void vary_symbols(const TaskConfig&, SampleRng&, std::vector<std::int32_t>& out);
// Draws the symbols of an input with one of these, then sets the target, as Task::sample and Task::vary.
template <auto draw_symbols, auto set_target>
void draw(const TaskConfig& config, SampleRng& rng, Example& example) {
  draw_symbols(config, rng, example.input);
  set_target(config, example);
}
// Appends all positions of the input, as Task::candidates.
void all_positions(const TaskConfig&, const Example&, std::size_t i, std::vector<std::int32_t>& keys);
// Appends all positions of the input that hold answer `i`, as Task::relevant.
void answer_positions(const TaskConfig&, const Example&, std::size_t i, std::vector<Relevant>& keys);
// Returns how many such sequences exist.
double count_symbol_sequences(const TaskConfig&);

std::vector<std::string> number_tokens(const TaskConfig&);   // "0", "1", ... `symbols` of them
std::vector<std::string> letter_tokens(const TaskConfig&);   // "a", "b", ...; "s0", "s1", ... if more than 26
std::vector<std::string> opening_tokens(const TaskConfig&);  // "(", "[", "{", "<"; "(0", "(1", ... if more
ExampleSize one_per_position(const TaskConfig&);             // {length, length}
ExampleSize one_per_sequence(const TaskConfig&);             // {length, 1}
double one_in_symbols(const TaskConfig&);                    // 1 / symbols
double one_half(const TaskConfig&);

// Returns a task whose inputs are uniform symbols and whose answers are one of these per position, but for its
// texts and what an answer depends on.
template <auto set_target>
Task symbol_task() {
  return {.keys = {"symbols", "length", "min_length"},
          .tokens = number_tokens,
          .size = one_per_position,
          .sample = draw<sample_symbols, set_target>,
          .distinct_inputs = count_symbol_sequences,
          .chance = one_in_symbols,
          .vary = draw<vary_symbols, set_target>};
}

}  // namespace tasks

}  // namespace thimble
