#include <algorithm>
#include <utility>

#include "thimble/engine/error.h"
#include "train/data/table/table_format.h"
#include "train/files/line_reader.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

// The columns of a line, at tabs if it has any, else at spaces.
std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns;
  line.remove_suffix(line.size() - line.find_last_not_of(" \t\r") - 1);
  if (line.find('\t') == line.npos)
    tokenize(line, Tokenization::spaces, [&](std::string_view column) { columns.push_back(column); });
  else
    std::ranges::transform(split_at('\t', line), std::back_inserter(columns), trimmed);
  return columns;
}

bool begins_document(std::string_view line) { return line.starts_with("-DOCSTART-"); }

// Sentences with a token a line and one answer per token, which blank lines end: of CoNLL-U
// (universaldependencies.org/format.html), or in columns.
class Sentences : public RowFormat {
 public:
  Sentences(const TableOptions& options, bool universal)
      : universal_(universal),
        last_is_target_(!universal && options.target.empty()),
        input_("task.input", options.input, universal ? 1 : 0),
        target_("task.target", options.target, universal ? 3 : 0) {
    if (universal) {
      input_.find(kFields, "field");
      target_.find(kFields, "field");
    }
    require<DataError>(!input_.are_named() && !target_.are_named(),
                       "task.input and task.target: columns of conll have numbers, from 0");
    require<DataError>(!universal || std::max(input_.last(), target_.last()) < kFields.size(),
                       "task.input and task.target: CoNLL-U has fields 0 to {}", kFields.size() - 1);
  }

  bool takes_blanks() const override { return true; }
  bool is_open() const override { return now_.is_open; }
  bool end() override {
    const Sentence was = std::exchange(now_, {});
    require<DataError>(was.range <= was.words, kIds, "end of the sentence", was.words + 1);
    return was.is_open;
  }

  bool read(std::string_view line, SequenceReader& input, SequenceReader& target) override {
    if (trimmed(line).empty()) return end();
    if (universal_ ? line.starts_with('#') : begins_document(line)) return !universal_ && end();
    const std::vector<std::string_view> fields = universal_ ? split_at('\t', line) : columns_of(line);
    if (universal_) {
      require<DataError>(fields.size() == kFields.size(), "{}; a token of CoNLL-U has {}, separated by tabs",
                         counted(std::ssize(fields), "field"), kFields.size());
      if (!is_token(fields[0])) return false;
    } else {
      check_columns(fields.size());
    }
    now_.is_open = true;
    input.whole(joined(input_, fields));
    target.whole(last_is_target_ ? std::string(fields.back()) : joined(target_, fields));
    return false;
  }

 private:
  std::string joined(const TableColumns& columns, const std::vector<std::string_view>& fields) const {
    std::string text;
    for (const std::size_t number : columns.numbers()) (text += text.empty() ? "" : "|") += fields[number];
    if (universal_) std::ranges::replace(text, ' ', '_');  // words of some languages have spaces
    return text;
  }

  // Returns whether the id is that of a token: not of a range (1-2), nor of an empty node (1.1).
  bool is_token(std::string_view id) {
    const std::uint32_t due = now_.words + 1;
    const auto last = parse_number<std::uint32_t>(id.substr(id.find('-') + 1));
    const bool is_word = id == std::to_string(due),
               is_node = id == fmt::format("{}.{}", now_.words, now_.nodes + 1),
               is_range = last && *last >= due && now_.range < due && id == fmt::format("{}-{}", due, *last),
               is_valid = is_word || is_node || is_range || due == 0;
    if (is_range) now_.range = *last;
    if (!is_range) now_.nodes = is_node ? now_.nodes + 1 : 0;
    if (is_word || !is_valid) now_.words = is_word ? due : ~0U;
    require<DataError>(is_valid, kIds, "id " + printable(id), due);
    return id.find_first_of("-.") == id.npos;
  }

  void check_columns(std::size_t count) {
    if (columns_ == 0) columns_ = count;
    const std::size_t last = std::max(input_.last(), target_.last());
    require<DataError>(
        last < count && count > 1, "{}; a token has {}", counted(static_cast<std::int64_t>(count), "column"),
        last == 0 ? "at least 2, its answer in the last" : fmt::format("column {}, from 0", last));
    require<DataError>(
        !last_is_target_ || count == columns_,
        "{}; the first token has {}; delete its line if it is none, or set task.target to the column of the answers",
        counted(static_cast<std::int64_t>(count), "column"), columns_);
  }

  // Of CoNLL-U, the number of words (-1 after an error), the end of the last range, and the empty nodes behind the last word.
  struct Sentence {
    bool is_open = false;
    std::uint32_t words = 0, range = 0, nodes = 0;
  };

  static inline const std::vector<std::string_view> kFields{"id",    "form", "lemma",  "upos", "xpos",
                                                            "feats", "head", "deprel", "deps", "misc"};
  static constexpr const char* kIds =
      "{} where {} is due; ids of a sentence are 1, 2, 3, ..., with 1-2 before 1, in which no other range begins, and 1.1, 1.2 after it; a blank line ends it: restore the lines that are missing";
  const bool universal_, last_is_target_;
  TableColumns input_, target_;
  Sentence now_;
  std::size_t columns_ = 0;  // of the first token
};

}  // namespace

std::unique_ptr<RowFormat> sentences_format(const TableOptions& options, bool universal) {
  return std::make_unique<Sentences>(options, universal);
}

void refuse_sentences(const DataText& file, bool csv) {
  constexpr int kMaxLines = 1000;
  LineReader reader = file.file ? LineReader(*file.file) : LineReader(file.text);
  std::size_t columns = 0, tokens = 0, sentences = 0;
  bool open = false;
  std::string_view line;
  for (int i = 0; i < kMaxLines && reader.next(line); ++i) {
    std::size_t count = 0;
    if (csv)
      count = line.empty() ? 0 : split_at(',', line).size();
    else if (!begins_document(line))
      tokenize(line, Tokenization::spaces, [&](std::string_view) { ++count; });
    if (csv ? std::ranges::count(line, '"') % 2 > 0 : count > 0 && columns > 0 && count != columns) return;
    sentences += count > 0 && !open ? 1 : 0;
    tokens += count > 0 ? 1 : 0;
    open = count > 0;
    if (columns == 0) columns = count;
  }
  require<DataError>(
      columns < 2 || sentences < 3 || tokens < 2 * sentences,
      "lines of {} columns with blank lines between them, as of sentences whose tokens have tags; lines of pairs have no blank lines between them; {} task.format=conll",
      columns,
      csv ? fmt::format(
                "write tabs, python3 -c 'import csv, sys; [print(*row, sep=\"\\t\") for row in csv.reader(sys.stdin)]' <{} >NEW, and set task.file=NEW",
                shell_command({file.name}))
          : "set");
}

}  // namespace thimble
