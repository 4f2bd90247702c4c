#include "data/table_reader.h"

#include <algorithm>

#include "thimble/core/error.h"
#include "thimble/core/format.h"
#include "thimble/core/json.h"
#include "thimble/core/progress.h"
#include "thimble/core/suggest.h"
#include "thimble/core/text.h"

namespace thimble {

namespace {

constexpr std::size_t kMaxLine = 1 << 20, kMaxToken = 255, kMaxTokens = 65536;
constexpr std::size_t kMaxSequence = 8192;  // as the key `length` of other tasks

// Calls f with each line and reports the DataErrors that it throws, whose messages are rules.
template <class F>
void for_lines(const TableText& file, TableProblems& problems, F f) {
  std::string_view text = file.text;
  text = text.substr(0, text.find_last_not_of("\r\n") + 1);
  if (text.empty()) problems.add(file.name, 0, "the file is empty");
  ProgressCounter progress("reading data", static_cast<double>(text.size()));
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    progress.advance(static_cast<double>(end + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    try {
      require<DataError>(line.size() <= kMaxLine, "line of {} bytes; the maximum is {}", line.size(),
                         kMaxLine);
      require<DataError>(line.find_first_not_of(' ') != line.npos, "blank line; delete it");
      require<DataError>(number > 1 || !line.starts_with("\xEF\xBB\xBF"),
                         "byte order mark; save the file without it");
      const std::size_t valid = utf8_size(line), nul = line.find('\0');
      require<DataError>(valid == line.size(), "invalid UTF-8 at byte {} of the line; save the file as UTF-8",
                         valid + 1);
      require<DataError>(nul == line.npos, "NUL byte at byte {} of the line; delete it", nul + 1);
      f(line);
    } catch (const DataError& e) {
      problems.add(file.name, number, e.what());
    }
  }
}

// A reader of the tokens of one sequence.
class SequenceReader {
 public:
  SequenceReader(TableVocabulary& vocabulary, const TableProblems& problems, std::vector<std::int32_t>& ids)
      : vocabulary_(vocabulary), problems_(problems), ids_(ids) {}

  void token(std::string_view text) { ids_.push_back(vocabulary_.number(text, !problems_.full())); }
  void no_answer() { ids_.push_back(kIgnore); }

  // Reads tokens between spaces; the token `blank` is a position without an answer.
  void tokens(std::string_view text, std::string_view blank = {}) {
    while (true) {
      text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
      if (text.empty()) return;
      const std::string_view word = text.substr(0, text.find(' '));
      if (!blank.empty() && word == blank)
        no_answer();
      else
        token(word);
      text.remove_prefix(word.size());
    }
  }

 private:
  TableVocabulary& vocabulary_;
  const TableProblems& problems_;
  std::vector<std::int32_t>& ids_;
};

// Reads the value of `key` in a line of JSON.
void read_value(const SortedJson& value, std::string_view key, SequenceReader& out) {
  if (value.is_string()) return out.tokens(value.get_ref<const std::string&>());
  const auto read_token = [&](const SortedJson& token) {
    const bool is_text = value.is_array() && token.is_string(), is_null = value.is_array() && token.is_null();
    require<DataError>(is_text || is_null || token.is_number_integer(),
                       "{} must be a list of texts and integers, a text, or an integer of 64 bits", key);
    require<DataError>(!is_null || key == "target",
                       "null in the input; only targets can have positions without an answer");
    if (is_null) return out.no_answer();
    out.token(is_text ? token.get<std::string>() : token.dump());
  };
  if (!value.is_array()) return read_token(value);
  for (const SortedJson& token : value) read_token(token);
}

void read_object(std::string_view line, SequenceReader& input, SequenceReader& target) {
  constexpr const char* kObject = R"({"input": ..., "target": ...})";
  const SortedJson json = parse_untrusted_json(line);
  require<DataError>(json.is_object(), "a line must be {}", kObject);
  for (const auto& [key, value] : json.items())
    require<DataError>(key == "input" || key == "target", "unknown key {}; a line must be {}", printable(key),
                       kObject);
  for (const char* key : {"input", "target"})
    require<DataError>(json.contains(key), "missing key {}; a line must be {}", key, kObject);
  read_value(json["input"], "input", input);
  read_value(json["target"], "target", target);
}

void read_tabs(std::string_view line, SequenceReader& input, SequenceReader& target) {
  const auto tabs = std::ranges::count(line, '\t');
  require<DataError>(tabs == 1, "{} tabs; a line must have 1, between input and target", tabs);
  const std::size_t tab = line.find('\t');
  constexpr std::string_view kNoAnswer = "_";
  std::string_view words = line.substr(0, tab);
  input.tokens(words);
  target.tokens(line.substr(tab + 1), kNoAnswer);
}

void check_row(const std::vector<std::int32_t>& input, const std::vector<std::int32_t>& target) {
  const auto check = [](const char* name, const std::vector<std::int32_t>& tokens) {
    require<DataError>(!tokens.empty(), "empty {}", name);
    require<DataError>(tokens.size() <= kMaxSequence, "{} of {} tokens; the maximum is {}", name,
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

void TableVocabulary::read(const TableText& file, TableProblems& problems) {
  for_lines(file, problems, [&](std::string_view line) {
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
  require<DataError>(std::ranges::none_of(token, is_control), "control character in token {}",
                     printable(token));
  require<DataError>(token.find(' ') == token.npos, "space in token {}", token);
  if (fixed()) {
    std::vector<std::string_view> names;
    if (guess)
      for (const auto& [name, id] : numbers_) names.push_back(name);
    throw DataError(fmt::format("token {} is not in {}{}", token, fixed_by_, did_you_mean(token, names)));
  }
  require<DataError>(numbers_.size() < kMaxTokens,
                     "token {} exceeds the maximum of {} tokens in a vocabulary", token, kMaxTokens);
  const auto id = static_cast<std::int32_t>(numbers_.size());
  numbers_.emplace(token, id);
  return id;
}

void read_rows(const TableText& file, TableVocabulary& vocabulary, TableProblems& problems,
               std::vector<std::int32_t>& ids, std::vector<std::uint32_t>& ends) {
  const bool json = file.name.ends_with(".jsonl");
  if (!json && !file.name.ends_with(".tsv") && !file.name.ends_with(".txt"))
    return problems.add(file.name, 0, "unknown format; the name must end in .jsonl, .tsv or .txt");
  std::vector<std::int32_t> input, target;
  SequenceReader input_tokens(vocabulary, problems, input), target_tokens(vocabulary, problems, target);
  for_lines(file, problems, [&](std::string_view line) {
    input.clear();
    target.clear();
    (json ? read_object : read_tabs)(line, input_tokens, target_tokens);
    check_row(input, target);
    for (const auto* tokens : {&input, &target}) {
      ids.insert(ids.end(), tokens->begin(), tokens->end());
      ends.push_back(static_cast<std::uint32_t>(ids.size()));
    }
  });
}

}  // namespace thimble
