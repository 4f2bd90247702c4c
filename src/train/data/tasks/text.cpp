#include <algorithm>

#include "thimble/train/task.h"
#include "train/data/text/text.h"

namespace thimble::tasks::text {
namespace {

std::shared_ptr<const Rows> open(const TaskConfig& config, const DataRecord* trained) {
  return std::make_shared<Text>(open_files(config, trained), config.text, config.length, trained);
}

// Sets the example to tokens at random places of the text, then the same again: what follows a token can be told
// from its first occurrence and not from the language. The first of them have no answer.
void vary(const TaskConfig& config, SampleRng& rng, Example& example) {
  const Rows& rows = rows_of(config);
  Example other;
  example.input.clear();
  const auto half = static_cast<std::size_t>(std::max<std::int64_t>(1, rows.longest().input / 2));
  while (example.input.size() < half) {
    rows.example(rng.below(rows.rows()), other);
    const std::int32_t token = other.target[static_cast<std::size_t>(rng.below(std::ssize(other.target)))];
    if (token != kIgnore) example.input.push_back(token);
  }
  example.input.insert(example.input.end(), example.input.begin(), example.input.end());
  example.input.resize(std::min(example.input.size(), static_cast<std::size_t>(rows.longest().input)));
  example.target.assign(example.input.size(), kIgnore);
  for (std::size_t i = half - 1; i < example.input.size(); ++i)
    example.target[i] = example.input[(i + 1) % half];
}

}  // namespace

Task task() {
  return {
      .summary = "the next token of a text, from a file",
      .definition =
          "`file` is a text, whose tokens the model reads one after another, to predict the next. With "
          "`documents` lines, each line that is not blank is a document between boundaries, shown as ⏎; a "
          "hash of its text determines its split. With stream, the file is one text: training reads windows "
          "of `length` tokens at random places of its first 8 tenths, and validation and test are the last "
          "two, or the shares in `split`. validation_file and test_file replace these splits. `tokens` are "
          "characters, words, bytes, or what is between spaces. A document of more than `length` tokens "
          "becomes several windows, or, with `long` cut, its first. Windows of validation and test begin "
          "`stride` tokens after one another. The vocabulary is all tokens in sorted order, those of "
          "`vocabulary` training, or those that occur min_count times; others are <unk>. docs/text.md goes "
          "from a text to samples.",
      .keys = {"file", "validation_file", "test_file", "documents", "tokens", "length", "long", "stride",
               "split", "vocabulary", "min_count"},
      .causal = true,
      .continues = true,
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

}  // namespace thimble::tasks::text
