#include "train/data/table/table_format.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "train/files/text/format.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

std::vector<std::string> parts_of(std::string_view spec) {
  const std::vector<std::string_view> parts = split_at(',', spec);
  return {parts.begin(), parts.end()};
}

bool is_number(const std::string& part) { return parse_number<std::uint16_t>(part).has_value(); }

// The columns of a sequence: by number, or by name until the names are known.
class Columns {
 public:
  // Throws DataError for an empty part.
  Columns(std::string_view key, const std::string& spec, std::size_t usual) : key_(key) {
    if (spec.empty()) {
      numbers_ = {usual};
      return;
    }
    names_ = parts_of(spec);
    require<DataError>(std::ranges::none_of(names_, &std::string::empty),
                       "{} is \"{}\"; give columns joined by commas", key, printable(spec));
    if (!std::ranges::all_of(names_, is_number)) return;
    for (const std::string& name : names_) numbers_.push_back(*parse_number<std::uint16_t>(name));
    names_.clear();
  }

  bool are_named() const { return !names_.empty(); }
  const std::vector<std::size_t>& numbers() const { return numbers_; }
  std::size_t last() const { return std::ranges::max(numbers_); }

  // Replaces names by their numbers. Throws DataError for a name that is not among `all`, called `what`.
  void find(const std::vector<std::string_view>& all, std::string_view what) {
    for (const std::string& name : names_) {
      const auto found = std::ranges::find(all, name);
      require<DataError>(found != all.end(), "{}: no {} {}{}; there are {}", key_, what, printable(name),
                         did_you_mean(name, all), fmt::join(all, ", "));
      numbers_.push_back(static_cast<std::size_t>(found - all.begin()));
    }
    names_.clear();
  }

 private:
  std::string_view key_;
  std::vector<std::string> names_;
  std::vector<std::size_t> numbers_;
};

// Tab-separated and comma-separated values, and lines that are cut in two.
class Separated : public RowFormat {
 public:
  Separated(const TableOptions& options, bool csv)
      : csv_(csv),
        separator_(!options.separator.empty() ? options.separator
                   : csv                      ? ","
                                              : "\t"),
        cut_(!csv && !options.separator.empty()),
        all_(options.input.empty() && options.target.empty()),
        input_("task.input", options.input, 0),
        target_("task.target", options.target, 1),
        header_(options.header || input_.are_named() || target_.are_named()) {
    require<DataError>(!csv || separator_.size() == 1,
                       "task.separator of a CSV file must be 1 byte, not {}; set task.format=tsv",
                       separator_.size());
  }

  bool read(std::string_view line, SequenceReader& input, SequenceReader& target) override {
    if (failed_) return false;
    if (csv_)
      split_csv(line);
    else
      split(line);
    if (header_) {
      header_ = false;
      failed_ = true;  // until the names are found
      input_.find(fields_, "column");
      target_.find(fields_, "column");
      failed_ = false;
      return false;
    }
    const std::string_view what = csv_ ? "comma" : cut_ ? "separator" : "tab";
    require<DataError>(
        !all_ || fields_.size() == 2,
        "{}; a line must have 1, between input and target, unless task.input and task.target name columns",
        counted(std::ssize(fields_) - 1, separator_ == "," || !csv_ ? what : "separator"));
    const std::size_t last = std::max(input_.last(), target_.last());
    require<DataError>(last < fields_.size(), "{}; task.input and task.target need column {}, from 0",
                       counted(std::ssize(fields_), "column"), last);
    input.text(joined(input_));
    target.text(joined(target_));
    return true;
  }

 private:
  void split(std::string_view line) {
    fields_.clear();
    const auto trimmed = [&](std::string_view text) {
      if (!cut_) return text;
      const std::size_t start = std::min(text.find_first_not_of(' '), text.size());
      return text.substr(start, text.find_last_not_of(' ') + 1 - start);
    };
    for (std::size_t end = 0; !cut_ || fields_.empty(); line.remove_prefix(end + separator_.size())) {
      end = line.find(separator_);
      if (end == line.npos) break;
      fields_.push_back(trimmed(line.substr(0, end)));
    }
    fields_.push_back(trimmed(line));
  }

  // Splits a record of RFC 4180. Quotes within a field that is not quoted are part of it.
  void split_csv(std::string_view line) {
    fields_.clear();
    unquoted_.clear();
    std::vector<std::size_t> ends;
    for (bool more = true; more;) {
      if (line.starts_with('"')) {
        std::size_t quote = 1;
        for (;; quote += 2) {
          const std::size_t start = quote;
          quote = line.find('"', start);
          require<DataError>(
              quote != line.npos,
              "a quoted field does not end on its line; a line break within quotes is not supported, replace it by a space");
          unquoted_ += line.substr(start, quote - start);
          if (!line.substr(quote + 1).starts_with('"')) break;
          unquoted_ += '"';
        }
        line.remove_prefix(quote + 1);
        require<DataError>(
            line.empty() || line.starts_with(separator_),
            "text after the end of a quoted field; quote all of the field, and double the quotes in it");
      } else {
        const std::string_view field = line.substr(0, line.find(separator_));
        unquoted_ += field;
        line.remove_prefix(field.size());
      }
      ends.push_back(unquoted_.size());
      more = !line.empty();
      if (more) line.remove_prefix(1);
    }
    for (std::size_t i = 0, start = 0; i < ends.size(); start = ends[i++])
      fields_.push_back(std::string_view(unquoted_).substr(start, ends[i] - start));
  }

  std::string_view joined(const Columns& columns) {
    if (columns.numbers().size() == 1) return fields_[columns.numbers()[0]];
    joined_.clear();
    for (const std::size_t number : columns.numbers())
      (joined_ += number == columns.numbers()[0] && joined_.empty() ? "" : " ") += fields_[number];
    return joined_;
  }

  const bool csv_;
  const std::string separator_;
  const bool cut_, all_;
  Columns input_, target_;
  bool header_, failed_ = false;
  std::vector<std::string_view> fields_;
  std::string unquoted_, joined_;
};

// A JSON object a line.
class JsonLines : public RowFormat {
 public:
  explicit JsonLines(const TableOptions& options)
      : all_(options.input.empty() && options.target.empty()),
        input_(options.input.empty() ? std::vector<std::string>{"input"} : parts_of(options.input)),
        target_(options.target.empty() ? std::vector<std::string>{"target"} : parts_of(options.target)) {}

  bool read(std::string_view line, SequenceReader& input, SequenceReader& target) override {
    const std::string object = fmt::format(R"({{"{}": ..., "{}": ...}})", fmt::join(input_, "\": ..., \""),
                                           fmt::join(target_, "\": ..., \""));
    const SortedJson json = parse_untrusted_json(line);
    require<DataError>(json.is_object(), "a line must be {}", object);
    if (all_)
      for (const auto& [key, value] : json.items())
        require<DataError>(
            key == "input" || key == "target",
            "unknown key {}; a line must be {}, unless task.input and task.target name its keys",
            printable(key), object);
    for (const auto* keys : {&input_, &target_})
      for (const std::string& key : *keys)
        require<DataError>(json.contains(key), "missing key {}; a line must be {}", printable(key), object);
    for (const std::string& key : input_) read_value(json[key], key, false, input);
    for (const std::string& key : target_) read_value(json[key], key, true, target);
    return true;
  }

 private:
  static void read_value(const SortedJson& value, std::string_view key, bool is_target, SequenceReader& out) {
    if (value.is_string()) return out.plain_text(value.get_ref<const std::string&>());
    const auto read_token = [&](const SortedJson& token) {
      const bool is_text = value.is_array() && token.is_string(),
                 is_null = value.is_array() && token.is_null();
      require<DataError>(is_text || is_null || token.is_number_integer(),
                         "{} must be a list of texts and integers, a text, or an integer of 64 bits", key);
      require<DataError>(!is_null || is_target,
                         "null in the input; only targets can have positions without an answer");
      if (is_null) return out.no_answer();
      out.token(is_text ? token.get<std::string>() : token.dump());
    };
    if (!value.is_array()) return read_token(value);
    for (const SortedJson& token : value) read_token(token);
  }

  const bool all_;
  const std::vector<std::string> input_, target_;
};

// Sentences of CoNLL-U (universaldependencies.org/format.html), one answer per token.
class Conllu : public RowFormat {
 public:
  explicit Conllu(const TableOptions& options)
      : input_("task.input", options.input, 1), target_("task.target", options.target, 3) {
    input_.find(kFields, "field");
    target_.find(kFields, "field");
    require<DataError>(std::max(input_.last(), target_.last()) < kFields.size(),
                       "task.input and task.target: CoNLL-U has fields 0 to {}", kFields.size() - 1);
  }

  bool blanks() const override { return true; }
  bool is_open() const override { return open_; }

  bool read(std::string_view line, SequenceReader& input, SequenceReader& target) override {
    if (line.find_first_not_of(' ') == line.npos) return std::exchange(open_, false);
    if (line.starts_with('#')) return false;
    const std::vector<std::string_view> fields = split_at('\t', line);
    require<DataError>(fields.size() == kFields.size(), "{}; a token of CoNLL-U has {}, separated by tabs",
                       counted(std::ssize(fields), "field"), kFields.size());
    if (fields[0].find_first_of("-.") != fields[0].npos) return false;
    open_ = true;
    input.whole(joined(input_, fields));
    target.whole(joined(target_, fields));
    return false;
  }

 private:
  static std::string joined(const Columns& columns, const std::vector<std::string_view>& fields) {
    std::string text;
    for (const std::size_t number : columns.numbers()) (text += text.empty() ? "" : "|") += fields[number];
    std::ranges::replace(text, ' ', '_');  // words of some languages have spaces
    return text;
  }

  static inline const std::vector<std::string_view> kFields{"id",    "form", "lemma",  "upos", "xpos",
                                                            "feats", "head", "deprel", "deps", "misc"};
  Columns input_, target_;
  bool open_ = false;
};

TableFormat format_of(const std::string& name) {
  constexpr std::pair<std::string_view, TableFormat> kExtensions[] = {{".tsv", TableFormat::tsv},
                                                                      {".txt", TableFormat::tsv},
                                                                      {".csv", TableFormat::csv},
                                                                      {".jsonl", TableFormat::jsonl},
                                                                      {".conllu", TableFormat::conllu}};
  for (const auto& [extension, format] : kExtensions)
    if (name.ends_with(extension)) return format;
  throw DataError(
      "unknown format; the name must end in .tsv, .txt, .csv, .jsonl or .conllu, or set task.format");
}

}  // namespace

std::unique_ptr<RowFormat> row_format(const std::string& name, const TableOptions& options) {
  const TableFormat format = options.format == TableFormat::by_name ? format_of(name) : options.format;
  const bool separated = format == TableFormat::tsv || format == TableFormat::csv;
  require<DataError>(separated || (options.separator.empty() && !options.header),
                     "task.separator and task.header have no effect on JSON Lines and CoNLL-U; remove them");
  const bool cut =
      options.input_tokens != Tokenization::spaces || options.target_tokens != Tokenization::spaces;
  require<DataError>(
      format != TableFormat::conllu || !cut,
      "task.input_tokens and task.target_tokens have no effect on CoNLL-U, whose lines are tokens; remove them");
  if (separated) return std::make_unique<Separated>(options, format == TableFormat::csv);
  if (format == TableFormat::jsonl) return std::make_unique<JsonLines>(options);
  return std::make_unique<Conllu>(options);
}

}  // namespace thimble
