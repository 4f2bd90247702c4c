#include "data/table_reader.h"

#include <algorithm>

#include "thimble/core/error.h"
#include "thimble/core/json.h"
#include "thimble/core/nearest.h"
#include "thimble/core/progress.h"
#include "thimble/core/text.h"

namespace thimble {

namespace {

constexpr std::size_t kLongestLine = 1 << 20, kLongestToken = 255, kMostTokens = 65536;
constexpr std::size_t kLongestSequence = 8192;  // as the key `length` of other tasks

// Calls f with each line, and reports the DataError, a rule, that it throws.
template <class F>
void for_lines(const TableText& file, TableProblems& problems, F f) {
  std::string_view text = file.text;
  text = text.substr(0, text.find_last_not_of("\r\n") + 1);
  if (text.empty()) problems.add(file.name, 0, "is empty");
  ProgressCounter progress("reading data", static_cast<double>(text.size()));
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    progress.advance(static_cast<double>(end + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    try {
      require<DataError>(line.size() <= kLongestLine, "{} bytes, more than the {} of the longest line",
                         line.size(), kLongestLine);
      require<DataError>(line.find_first_not_of(' ') != line.npos, "a blank line; delete it");
      require<DataError>(number > 1 || !line.starts_with("\xEF\xBB\xBF"),
                         "a byte order mark; save the file without it");
      const std::size_t valid = utf8_size(line), nul = line.find('\0');
      require<DataError>(valid == line.size(), "not UTF-8 at its byte {}; save the file as UTF-8", valid + 1);
      require<DataError>(nul == line.npos, "a NUL byte, its byte {}", nul + 1);
      f(line);
    } catch (const DataError& e) {
      problems.add(file.name, number, e.what());
    }
  }
}

// The tokens of one sequence.
class SequenceReader {
 public:
  SequenceReader(TableVocabulary& vocabulary, const TableProblems& problems, std::vector<std::int32_t>& ids)
      : vocabulary_(vocabulary), problems_(problems), ids_(ids) {}

  void token(std::string_view text) { ids_.push_back(vocabulary_.number(text, !problems_.full())); }
  void no_answer() { ids_.push_back(kIgnore); }

  // Tokens between spaces; one that is `blank` asks for no answer.
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

// A line of JSON, told value by value, so that nothing is built. `input` and `target` get the tokens.
class JsonRow : public nlohmann::json_sax<Json> {
 public:
  JsonRow(SequenceReader& input, SequenceReader& target) : sequences_{input, target} {}

  bool null() override {
    require<DataError>(depth_ == 2, "{} must be {}", kKeys[key_], kSequence);
    require<DataError>(key_ == 1, "null in the input; only a target can ask for no answer");
    sequences_[1].no_answer();
    return true;
  }
  bool boolean(bool) override { return refuse(); }
  bool number_integer(std::int64_t number) override { return integer(number); }
  bool number_unsigned(std::uint64_t number) override { return integer(number); }
  bool number_float(double, const std::string&) override { return refuse(); }
  bool string(std::string& text) override {
    if (depth_ == 1)
      sequences_[key_].tokens(text);
    else
      depth_ == 2 ? sequences_[key_].token(text) : static_cast<void>(refuse());
    return true;
  }
  bool binary(Json::binary_t&) override { return refuse(); }
  bool start_object(std::size_t) override {
    if (depth_ > 0) refuse();
    ++depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 1) refuse();
    ++depth_;
    return true;
  }
  bool end_array() override { return --depth_ > 0; }
  bool end_object() override {
    for (std::size_t key : {0U, 1U})
      require<DataError>(seen_[key], "no {}; a line is {}", kKeys[key], kObject);
    return true;
  }
  bool key(std::string& name) override {
    key_ = static_cast<std::size_t>(std::ranges::find(kKeys, name) - kKeys);
    require<DataError>(key_ < 2, "unknown key {}; a line is {}", printable(name), kObject);
    require<DataError>(!seen_[key_], "{} stands twice", name);
    return seen_[key_] = true;
  }
  bool parse_error(std::size_t byte, const std::string&, const Json::exception&) override {
    throw DataError(fmt::format("not valid JSON at its byte {}", byte));
  }

 private:
  static constexpr std::string_view kKeys[] = {"input", "target"};
  static constexpr const char* kObject = R"({"input": ..., "target": ...})";
  static constexpr const char* kSequence = "a list of texts and integers, a text, or an integer of 64 bits";

  bool refuse() const {
    require<DataError>(depth_ > 0, "a line must be {}", kObject);
    throw DataError(fmt::format("{} must be {}", kKeys[key_], kSequence));
  }
  template <class T>
  bool integer(T number) {
    if (depth_ == 0) refuse();
    sequences_[key_].token(std::to_string(number));
    return true;
  }

  SequenceReader sequences_[2];
  int depth_ = 0;        // 1 in the object, 2 in a list
  std::size_t key_ = 0;  // which of kKeys the value belongs to
  bool seen_[2] = {};
};

void read_tabs(std::string_view line, SequenceReader& input, SequenceReader& target) {
  const auto tabs = std::ranges::count(line, '\t');
  require<DataError>(tabs == 1, "{} tabs; one stands between input and target", tabs);
  const std::size_t tab = line.find('\t');
  constexpr std::string_view kNoAnswer = "_";
  std::string_view words = line.substr(0, tab);
  input.tokens(words);
  target.tokens(line.substr(tab + 1), kNoAnswer);
}

void check_row(const std::vector<std::int32_t>& input, const std::vector<std::int32_t>& target) {
  const auto check = [](const char* name, const std::vector<std::int32_t>& tokens) {
    require<DataError>(!tokens.empty(), "an empty {}", name);
    require<DataError>(tokens.size() <= kLongestSequence, "{} of {} tokens; {} is the most", name,
                       tokens.size(), kLongestSequence);
  };
  check("input", input);
  check("target", target);
  require<DataError>(std::ranges::any_of(target, [](std::int32_t id) { return id != kIgnore; }),
                     "a target without an answer");
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
  std::string message = fmt::format("{}: {} problem{}", first_file_, count_, count_ == 1 ? "" : "s");
  for (const auto& [line, more] : shown_) {
    message += '\n' + line;
    if (more > 0) message += fmt::format(" (and {} more line{} like it)", more, more == 1 ? "" : "s");
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
    require<DataError>(numbers_.size() > before, "token {} stands twice", line);
  });
  fixed_by_ = "the vocabulary file";
}

void TableVocabulary::read(const std::vector<std::string>& trained) {
  for (const std::string& token : trained) {
    const auto before = static_cast<std::int32_t>(numbers_.size());
    require<DataError>(number(token, false) == before, "the model's vocabulary: token {} stands twice",
                       printable(token));
  }
  fixed_by_ = "the vocabulary that the model was trained with";
}

std::int32_t TableVocabulary::number(std::string_view token, bool guess) {
  if (const auto found = numbers_.find(token); found != numbers_.end()) return found->second;
  require<DataError>(!token.empty(), "an empty token");
  require<DataError>(token.size() <= kLongestToken, "a token of {} bytes, {}; {} is the most", token.size(),
                     printable(token), kLongestToken);
  require<DataError>(std::ranges::none_of(token, is_control), "a control character in token {}",
                     printable(token));
  require<DataError>(token.find(' ') == token.npos, "a space in token {}", token);
  if (fixed()) {
    std::vector<std::string_view> names;
    if (guess)
      for (const auto& [name, id] : numbers_) names.push_back(name);
    const std::string_view meant = nearest_name(token, names);
    throw DataError(fmt::format("token {} is not in {}{}", token, fixed_by_,
                                meant.empty() ? "" : fmt::format(", did you mean {}?", meant)));
  }
  require<DataError>(numbers_.size() < kMostTokens,
                     "token {} is one more than the {} that a vocabulary can have", token, kMostTokens);
  const auto id = static_cast<std::int32_t>(numbers_.size());
  numbers_.emplace(token, id);
  return id;
}

void read_rows(const TableText& file, TableVocabulary& vocabulary, TableProblems& problems,
               std::vector<std::int32_t>& ids, std::vector<std::uint32_t>& ends) {
  const bool json = file.name.ends_with(".jsonl");
  if (!json && !file.name.ends_with(".tsv") && !file.name.ends_with(".txt"))
    return problems.add(file.name, 0, "the name must end in .jsonl, .tsv or .txt, which says the format");
  std::vector<std::int32_t> input, target;
  SequenceReader input_tokens(vocabulary, problems, input), target_tokens(vocabulary, problems, target);
  for_lines(file, problems, [&](std::string_view line) {
    input.clear();
    target.clear();
    if (json) {
      JsonRow reader(input_tokens, target_tokens);
      read_json(line, reader);
    } else {
      read_tabs(line, input_tokens, target_tokens);
    }
    check_row(input, target);
    for (const auto* tokens : {&input, &target}) {
      ids.insert(ids.end(), tokens->begin(), tokens->end());
      ends.push_back(static_cast<std::uint32_t>(ids.size()));
    }
  });
}

}  // namespace thimble
