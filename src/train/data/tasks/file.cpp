#include "thimble/engine/error.h"
#include "thimble/train/task.h"
#include "train/data/table/table.h"

namespace thimble::tasks::file {
namespace {

std::shared_ptr<FileSource> open(const TaskConfig& config, const DataRecord* trained) {
  return std::make_shared<Table>(open_files(config, trained), trained);
}

}  // namespace

Task task() {
  return {
      .summary = "your own pairs, from a file",
      .definition =
          "`file` has an input and a target on each line: tab-separated (.tsv, .txt), comma-separated "
          "(.csv) or JSON Lines (.jsonl); or a token and its tag: CoNLL-U (.conllu) or columns (.conll, .bio, "
          ".iob). A hash of the input's text determines the split of a line, so that equal inputs are in the "
          "same split and other lines do not matter; validation_file and test_file replace these splits. "
          "`format` chooses a format where the extension does not; `input` and `target` choose columns, "
          "`header` skips a first line, and `separator` is where a line is cut. `input_tokens` and "
          "`target_tokens` make tokens of a text; `no_answer` is the token of a target that marks a position "
          "without an answer. The vocabulary is all tokens in sorted order, those of `vocabulary` training, "
          "those that occur min_count times, or the lines of vocabulary_file. Lines of more than max_tokens "
          "tokens are left out, and with skip_empty those with an empty field. docs/tasks.md has a file of "
          "each kind and its command.",
      .keys = {"file", "validation_file", "test_file", "vocabulary_file", "format", "input", "target",
               "header", "separator", "input_tokens", "target_tokens", "no_answer", "vocabulary", "min_count",
               "max_tokens", "skip_empty"},
      .open = open};
}

}  // namespace thimble::tasks::file
