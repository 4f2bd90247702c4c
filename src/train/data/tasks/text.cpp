#include "thimble/train/task.h"
#include "train/data/corpus/corpus.h"

namespace thimble::tasks::text {
namespace {

std::shared_ptr<FileSource> open(const TaskConfig& config, const DataRecord* trained) {
  return std::make_shared<Corpus>(open_files(config, trained), config.text, config.length, trained);
}

}  // namespace

Task task() {
  return {
      .summary = "the next token of a text, from a file",
      .definition =
          "`file` is a text, whose tokens the model reads one after another, to predict the next. With "
          "`documents` lines, each line that is not blank is a document between boundaries, shown as ⏎; a "
          "hash of its text determines its split. With paragraphs, blank lines separate documents of several "
          "lines, and with records a line that begins with `separator` begins one; their boundary is "
          "¶. With stream, the file is one text: training reads windows "
          "of `length` tokens at random places of its first 8 tenths, and validation and test are the last "
          "two, or the shares in `split`. validation_file and test_file replace these splits. `tokens` are "
          "characters, words, bytes, or what is between spaces. A document of more than `length` tokens "
          "becomes several windows, or, with `long` cut, its first. Windows of validation and test begin "
          "`stride` tokens after one another. The vocabulary is all tokens in sorted order, those of "
          "`vocabulary` training, or those that occur min_count times; others are <unk>. docs/text.md goes "
          "from a text to samples.",
      .keys = {"file", "validation_file", "test_file", "documents", "separator", "tokens", "length", "long",
               "stride", "split", "vocabulary", "min_count"},
      .causal = true,
      .predicts_next = true,
      .open = open};
}

}  // namespace thimble::tasks::text
