#include "train/data/table/table_reader.h"

#include <algorithm>

#include "thimble/engine/error.h"
#include "train/data/files/data_lines.h"
#include "train/data/table/table_format.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

constexpr std::size_t kMaxSequence = 8192;  // as the key `length` of other tasks

// Returns the number of a kind of alignments, which it adds if it is new.
std::int32_t kind_number(std::vector<std::string>& kinds, const std::string& kind) {
  constexpr std::int64_t kMaxKinds = 32;
  const auto number = std::ranges::find(kinds, kind) - kinds.begin();
  require<DataError>(number < kMaxKinds, "attends: {} is kind number {}; {} is the most", printable(kind),
                     number + 1, kMaxKinds);
  if (number == std::ssize(kinds)) kinds.push_back(kind);
  return static_cast<std::int32_t>(number);
}

void check_row(const std::vector<std::int32_t>& input, const std::vector<std::int32_t>& target,
               bool needs_answer) {
  for (const auto& [name, size] : {std::pair("input", input.size()), {"target", target.size()}})
    require<DataError>(size <= kMaxSequence,
                       "{} of {} tokens; the maximum is {}; leave out such lines with task.max_tokens", name,
                       size, kMaxSequence);
  require<DataError>(
      !needs_answer || std::ranges::any_of(target, [](std::int32_t id) { return id != kIgnore; }),
      "target without an answer; at least 1 position must have one");
}

}  // namespace

void SequenceReader::token(std::string_view text) {
  ids_.push_back(vocabulary_.number(text, !problems_.full()));
  (hashed_ += text) += '\0';
}

void SequenceReader::no_answer() {
  ids_.push_back(kIgnore);
  hashed_ += '\0';
  ++blanks_;
}

void SequenceReader::whole(std::string_view text) {
  const bool is_blank = !blank_.empty() && text == blank_;
  if (is_blank && marks_) return no_answer();
  blanks_ += is_blank ? 1 : 0;
  const bool escaped = marks_ && !blank_.empty() && text.starts_with('\\') && text.substr(1) == blank_;
  token(escaped ? text.substr(1) : text);
}

void SequenceReader::text(std::string_view text, std::size_t column, bool plain) {
  const std::size_t before = ids_.size();
  tokenize(text, tokens_.of(column), [&](std::string_view one) { plain ? token(one) : whole(one); });
  cut_ = std::max(cut_, ids_.size() > before + 1 ? Cut::apart : Cut::whole);
}

void SequenceReader::plain_text(std::string_view text, std::size_t column) {
  has_empty_ |= trimmed(text).empty();
  this->text(text, column, true);
}

void SequenceReader::columns(std::span<const std::string_view> texts) {
  joined_.clear();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    has_empty_ |= trimmed(texts[i]).empty();
    if (texts.size() == 1 || !tokens_.are_one_text())
      text(texts[i], i, false);
    else
      (joined_ += i > 0 ? " " : "") += texts[i];
  }
  if (!joined_.empty()) text(joined_, 0, false);
}

void SequenceReader::clear() {
  ids_.clear();
  hashed_.clear();
  has_empty_ = false;
}

void read_rows(const DataText& file, const TableOptions& options, Vocabulary& vocabulary, Problems& problems,
               DataFile& source, TableRows& rows, std::vector<std::uint64_t>& input_hashes) {
  const auto report = [&](std::size_t line, const char* rule) { problems.add(file.name, line, rule); };
  std::unique_ptr<RowFormat> format;
  try {
    format = row_format(file, options);
  } catch (const DataError& e) {
    std::string rule = e.what();  // unless the file has no lines at all, or those of another kind
    for_lines(
        file, Lines::any, source,
        [&](std::size_t line, const char* whole) { rule = line == 0 ? whole : rule; },
        [](std::string_view, std::size_t, bool) {});
    return report(0, rule.c_str());
  }
  SequenceReader input(vocabulary, problems, options.input_tokens, options.no_answer, false),
      target(vocabulary, problems, options.target_tokens, options.no_answer, true);
  std::size_t start = 0;  // the line that the row starts on
  const auto add = [&] {
    if (file.hypotheses && *file.hypotheses != Layout::seq2seq && target.ids().empty()) {
      const std::size_t answers = *file.hypotheses == Layout::position ? input.ids().size() : 1;
      while (target.ids().size() < answers) target.no_answer();
    }
    const auto is_empty = [&](const SequenceReader& sequence) {
      return sequence.ids().empty() || (sequence.has_empty() && !file.hypotheses);
    };
    if (is_empty(input) || is_empty(target)) {
      const SequenceReader& empty = is_empty(input) ? input : target;
      require<DataError>(options.skip_empty, "empty {}{}; leave out such lines with task.skip_empty=true",
                         empty.ids().empty() ? "" : "field in the ", &empty == &input ? "input" : "target");
      ++rows.counts.empty;
      return;
    }
    const auto longest = static_cast<std::int64_t>(std::max(input.ids().size(), target.ids().size()));
    if (options.max_tokens > 0 && longest > options.max_tokens) {
      ++rows.counts.too_long;
      return;
    }
    const RowMarks& marks = format->marks();
    check_row(input.ids(), target.ids(), !file.hypotheses);
    const auto row = static_cast<std::uint32_t>(rows.lines.size());
    for (const RowMarks::Attends& one : marks.attends)
      rows.attends.push_back({row,
                              {static_cast<std::int32_t>(one.query), static_cast<std::int32_t>(one.key),
                               kind_number(rows.kind_names, one.kind)}});
    if (marks.is_varied) rows.varied.push_back(row);
    for (const auto* tokens : {&input.ids(), &target.ids()}) {
      rows.ids.insert(rows.ids.end(), tokens->begin(), tokens->end());
      rows.ends.push_back(static_cast<std::uint32_t>(rows.ids.size()));
    }
    rows.lines.push_back(static_cast<std::uint32_t>(start));
    input_hashes.push_back(hash_of(input.hashed()));
    rows.hashes.push_back(hash_of(input.hashed() + target.hashed()));
  };
  const auto read = [&](std::string_view line, std::size_t number, bool) {
    if (!format->is_open()) {
      input.clear();
      target.clear();
      start = number;
    }
    try {
      if (format->read(line, input, target)) add();
    } catch (const DataError& e) {
      report(format->is_open() ? number : start, e.what());
    }
  };
  for_lines(file, Lines::filled, source, report, read, [&] { return format->takes_blanks(); });
  try {
    if (format->end()) add();
  } catch (const DataError& e) {
    report(start, e.what());
  }
  rows.counts.cuts = {std::max(rows.counts.cuts[0], input.cut()),
                      std::max(rows.counts.cuts[1], target.cut())};
  rows.counts.no_answers += target.blanks();
  rows.counts.blank_inputs += input.blanks();
}

}  // namespace thimble
