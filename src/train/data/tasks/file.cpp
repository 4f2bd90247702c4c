#include <algorithm>
#include <utility>

#include "thimble/engine/error.h"
#include "thimble/train/task.h"
#include "train/data/table/table.h"

namespace thimble::tasks::file {
namespace {

std::shared_ptr<const Rows> open(const TaskConfig& config, const DataRecord* trained) {
  return std::make_shared<Table>(open_files(config, trained), trained);
}

void shuffle(SampleRng& rng, std::vector<std::int32_t>& tokens) {
  for (std::int64_t i = std::ssize(tokens) - 1; i > 0; --i)
    std::swap(tokens[static_cast<std::size_t>(i)], tokens[static_cast<std::size_t>(rng.below(i + 1))]);
}

// Shuffles the input and the target of a row, and puts the start of another row in front, as far as it fits.
void vary(const TaskConfig& config, SampleRng& rng, Example& example) {
  const Rows& rows = rows_of(config);
  const ExampleSize longest = rows.longest();
  Example other;
  rows.example(rng.below(rows.rows()), example);
  rows.example(rng.below(rows.rows()), other);
  const bool per_position = longest.input == longest.target && example.input.size() == example.target.size();
  if (per_position && other.input.size() != other.target.size()) other = {};
  shuffle(rng, example.input);
  shuffle(rng, example.target);
  const std::int64_t room = longest.input - std::ssize(example.input);
  const std::int64_t more = rng.below(std::min<std::int64_t>(room, std::ssize(other.input)) + 1);
  const auto put = [&](std::vector<std::int32_t>& to, const std::vector<std::int32_t>& from) {
    to.insert(to.begin(), from.begin(), from.begin() + more);
  };
  put(example.input, other.input);
  if (per_position) put(example.target, other.target);
}

}  // namespace

Task task() {
  return {
      .summary = "your own pairs, from a file",
      .definition =
          "`file` has an input and a target on each line: tab-separated (.tsv, .txt), comma-separated "
          "(.csv), JSON Lines (.jsonl) or CoNLL-U (.conllu). A hash of the input's text determines the "
          "split of a line, so that equal inputs are in the same split and other lines do not matter; "
          "validation_file and test_file replace these splits. `format` chooses a format where the "
          "extension does not; `input` and `target` choose columns, `header` skips a first line, and "
          "`separator` is where a line is cut. `input_tokens` and `target_tokens` make tokens of a text; "
          "`no_answer` is the token of a target that marks a position without an answer. The vocabulary is "
          "all tokens in sorted order, those of `vocabulary` training, those that occur min_count times, or "
          "the lines of vocabulary_file. Lines of more than max_tokens tokens are left out. docs/tasks.md "
          "has a file of each kind and its command.",
      .keys = {"file", "validation_file", "test_file", "vocabulary_file", "format", "input", "target",
               "header", "separator", "input_tokens", "target_tokens", "no_answer", "vocabulary", "min_count",
               "max_tokens"},
      .check = check_rows,
      .tokens = row_tokens,
      .size = longest_row,
      .at = row_at,
      .distinct_inputs = count_rows,
      .open = open,
      .chance = row_chance,
      .floor = nullptr,
      .vary = vary};
}

}  // namespace thimble::tasks::file
