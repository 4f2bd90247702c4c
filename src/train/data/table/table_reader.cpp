#include "train/data/table/table_reader.h"

#include <algorithm>

#include "thimble/engine/error.h"
#include "train/data/table/table_format.h"
#include "train/data/table/table_lines.h"
#include "train/files/text/format.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

constexpr std::size_t kMaxToken = 4096;
constexpr std::size_t kMaxSequence = 8192;     // as the key `length` of other tasks
constexpr std::size_t kMaxDistinct = 1 << 24;  // tokens of files, before rare ones are left out

void check_row(const std::vector<std::int32_t>& input, const std::vector<std::int32_t>& target) {
  const auto check = [](const char* name, const std::vector<std::int32_t>& tokens) {
    require<DataError>(!tokens.empty(), "empty {}", name);
    require<DataError>(tokens.size() <= kMaxSequence,
                       "{} of {} tokens; the maximum is {}; leave out such lines with task.max_tokens", name,
                       tokens.size(), kMaxSequence);
  };
  check("input", input);
  check("target", target);
  require<DataError>(std::ranges::any_of(target, [](std::int32_t id) { return id != kIgnore; }),
                     "target without an answer; at least 1 position must have one");
}

}  // namespace

void TableProblems::add(const std::string& file, std::size_t line, std::string_view rule,
                        std::string_view kind) {
  if (count_++ == 0) first_file_ = file;
  const std::string key = fmt::format("{}:{}", file, kind.empty() ? rule : kind);
  if (const auto known = kinds_.find(key); known != kinds_.end()) {
    ++shown_[known->second].more;
  } else if (full()) {
    ++hidden_;
  } else {
    kinds_.emplace(key, shown_.size());
    shown_.push_back(
        {line == 0 ? fmt::format("{}: {}", file, rule) : fmt::format("{}:{}: {}", file, line, rule)});
  }
}

std::string TableProblems::text() const {
  if (count_ == 0) return "";
  std::string message = fmt::format("{}: {}", first_file_, counted(count_, "problem"));
  for (const auto& [line, more] : shown_) {
    message += '\n' + line;
    if (more > 0) message += fmt::format(" (and {} like it)", counted(more, "more line"));
  }
  if (hidden_ > 0) message += fmt::format("\nand {} more", hidden_);
  return message;
}

void TableProblems::finish() const {
  if (count_ > 0) throw DataError(text());
}

void TableVocabulary::read(const TableText& file, TableProblems& problems, DataFile& source) {
  for_lines(
      file, Lines::filled, source,
      [&](std::size_t line, const char* rule) { problems.add(file.name, line, rule); },
      [&](std::string_view line, std::size_t, bool) {
        const std::size_t before = numbers_.size();
        number(line, false);
        require<DataError>(numbers_.size() > before, "duplicate token {}", line);
      });
  fixed_by_ = "the vocabulary file";
}

void TableVocabulary::read(const std::vector<std::string>& trained) {
  for (const std::string& token : trained) {
    const auto before = static_cast<std::int32_t>(numbers_.size());
    require<DataError>(number(token, false) == before, "the model's vocabulary: duplicate token {}",
                       printable(token));
  }
  fixed_by_ = "the vocabulary that the model was trained with";
}

std::int32_t TableVocabulary::number(std::string_view token, bool guess) {
  if (const auto found = numbers_.find(token); found != numbers_.end()) return found->second;
  require<DataError>(!token.empty(), "empty token");
  require<DataError>(token.size() <= kMaxToken, "token of {} bytes, {}; the maximum is {}", token.size(),
                     printable(token), kMaxToken);
  require<DataError>((any_control_ && token.size() == 1) ||
                         std::ranges::none_of(token, [](char c) { return is_control(c); }),
                     "control character in token {}", printable(token));
  require<DataError>(token.find(' ') == token.npos || token == " ", "space in token {}", token);
  if (fixed()) {
    if (const auto unknown = numbers_.find(kUnknownToken); has_unknown_ && unknown != numbers_.end())
      return unknown->second;
    std::vector<std::string_view> names;
    if (guess)
      for (const auto& [name, id] : sorted()) names.push_back(name);
    throw DataError(
        fmt::format("token {} is not in {}{}", printable(token), fixed_by_, did_you_mean(token, names)));
  }
  require<DataError>(numbers_.size() < kMaxDistinct, "token {} is one more than {} different ones",
                     printable(token), kMaxDistinct);
  const auto id = static_cast<std::int32_t>(numbers_.size());
  numbers_.emplace(token, id);
  return id;
}

std::vector<std::pair<std::string_view, std::int32_t>> TableVocabulary::sorted() const {
  std::vector<std::pair<std::string_view, std::int32_t>> all(numbers_.begin(), numbers_.end());
  std::ranges::sort(all);
  return all;
}

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

void SequenceReader::text(std::string_view text) {
  tokenize(text, tokens_, [this](std::string_view token) { whole(token); });
}

void SequenceReader::plain_text(std::string_view text) {
  tokenize(text, tokens_, [this](std::string_view one) { token(one); });
}

void SequenceReader::clear() {
  ids_.clear();
  hashed_.clear();
}

void read_rows(const TableText& file, const TableOptions& options, TableVocabulary& vocabulary,
               TableProblems& problems, DataFile& source, TableRows& rows) {
  const auto report = [&](std::size_t line, const char* rule) { problems.add(file.name, line, rule); };
  std::unique_ptr<RowFormat> format;
  try {
    format = row_format(file.name, options);
  } catch (const DataError& e) {
    report(0, e.what());
    return for_lines(
        file, Lines::any, source, [](std::size_t, const char*) {},
        [](std::string_view, std::size_t, bool) {});
  }
  SequenceReader input(vocabulary, problems, options.input_tokens, options.no_answer, false),
      target(vocabulary, problems, options.target_tokens, options.no_answer, true);
  std::size_t start = 0;  // the line that the row starts on
  const auto add = [&] {
    const auto longest = static_cast<std::int64_t>(std::max(input.ids().size(), target.ids().size()));
    if (options.max_tokens > 0 && longest > options.max_tokens) {
      ++rows.counts.too_long;
      return;
    }
    check_row(input.ids(), target.ids());
    for (const auto* tokens : {&input.ids(), &target.ids()}) {
      rows.ids.insert(rows.ids.end(), tokens->begin(), tokens->end());
      rows.ends.push_back(static_cast<std::uint32_t>(rows.ids.size()));
    }
    rows.lines.push_back(static_cast<std::uint32_t>(start));
    rows.hashes.push_back({hash_of(input.hashed()), hash_of(input.hashed() + target.hashed())});
  };
  const Lines lines = format->blanks() ? Lines::any : Lines::filled;
  for_lines(file, lines, source, report, [&](std::string_view line, std::size_t number, bool) {
    if (!format->is_open()) {
      input.clear();
      target.clear();
      start = number;
    }
    if (format->read(line, input, target)) add();
  });
  if (format->is_open()) {
    try {
      add();
    } catch (const DataError& e) {
      report(start, e.what());
    }
  }
  rows.counts.no_answers += target.blanks();
  rows.counts.blank_inputs += input.blanks();
}

}  // namespace thimble
