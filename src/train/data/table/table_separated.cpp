#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "thimble/engine/error.h"
#include "train/data/table/table_format.h"
#include "train/files/line_reader.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

// Tab-separated and comma-separated values, and lines that are cut in two.
class Separated : public RowFormat {
 public:
  Separated(const TableOptions& options, bool csv)
      : csv_(csv),
        separator_(!options.separator.empty() ? options.separator
                   : csv                      ? ","
                                              : "\t"),
        given_(!options.separator.empty()),
        cut_(!csv && given_),
        all_(options.input.empty() && options.target.empty()),
        input_("task.input", options.input, 0),
        target_("task.target", options.target, 1),
        header_(options.header || input_.are_named() || target_.are_named()) {
    require<DataError>(!csv || separator_.size() == 1,
                       "task.separator of a CSV file must be 1 byte, not {}; set task.format=tsv",
                       separator_.size());
  }

  bool is_open() const override { return open_; }

  bool read(std::string_view line, SequenceReader& input, SequenceReader& target) override {
    if (failed_) return false;
    if (csv_ && !begun_ && line.size() == 5 && line.starts_with("sep=")) {  // as Excel writes it
      if (!given_) separator_ = line.back();
      return false;
    }
    if (!csv_)
      split(line);
    else if (!split_csv(line))
      return false;
    if (!std::exchange(begun_, true) && fields_.size() == 1) check_separator(line, line);
    if (header_) {
      header_ = false;
      failed_ = true;  // until the names are found
      input_.find(fields_, "column");
      target_.find(fields_, "column");
      failed_ = false;
      if (!all_ && !cut_) width_ = fields_.size();
      return false;
    }
    const std::string_view what = csv_ && separator_ == "," ? "comma" : csv_ || cut_ ? "separator" : "tab";
    require<DataError>(
        !all_ || fields_.size() == 2,
        "{}; a line must have 1, between input and target, unless task.input and task.target name columns{}",
        counted(std::ssize(fields_) - 1, what),
        !csv_ && !cut_ && line.starts_with('"')
            ? "; if quotes enclose fields, set task.format=csv task.separator='\"\\t\"'"
            : "");
    const std::size_t last = std::max(input_.last(), target_.last());
    require<DataError>(last < fields_.size(), "{}; task.input and task.target need column {}, from 0",
                       counted(std::ssize(fields_), "column"), last);
    require<DataError>(fields_.size() <= width_, "{}; the header has {}; remove the {}s that are too many{}",
                       counted(std::ssize(fields_), "column"), width_, what,
                       csv_ ? ", or quote fields that have them, from their first character on" : "");
    read(input_, input);
    read(target_, target);
    return true;
  }

  bool end() override {
    require<DataError>(!open_ || failed_,
                       "a quoted field does not end; add the closing quote, or double quotes in it");
    return false;
  }

 private:
  // Throws DataError for a first line whose fields another character separates, which `rest` of it has, with the keys to
  // add: names of columns if it may have them, else numbers.
  void check_separator(std::string_view line, std::string_view rest) {
    const std::size_t at = rest.find_first_of(csv_ ? ";\t|" : ";|,");
    if (at == rest.npos || given_) return;
    begun_ = failed_ = true;  // one message is enough
    separator_ = rest[at];
    split_csv(line);
    const bool tab = separator_ == "\t";
    std::vector<std::string> keys;
    if (separator_ != ",") keys.push_back("task.separator=" + (tab ? "'\"\\t\"'" : '"' + separator_ + '"'));
    if (!csv_) keys.emplace_back("task.format=csv");
    if (all_ && fields_.size() > 2) {
      const bool named = line.find_first_of("0123456789") == line.npos;
      const auto column = [&](std::size_t i) { return named ? std::string(fields_[i]) : std::to_string(i); };
      for (const auto& [key, i] :
           {std::pair("task.input", fields_.size() - 2), {"task.target", fields_.size() - 1}})
        keys.push_back(shell_command({fmt::format("{}={}", key, column(i))}));
    }
    throw DataError(fmt::format("no {} between fields; if {} separates them, add {}", csv_ ? "comma" : "tab",
                                tab ? "a tab" : separator_, fmt::join(keys, " ")));
  }

  void split(std::string_view line) {
    fields_.clear();
    const auto part = [&](std::string_view text) { return cut_ ? trimmed(text) : text; };
    for (std::size_t end = 0; !cut_ || fields_.empty(); line.remove_prefix(end + separator_.size())) {
      end = line.find(separator_);
      if (end == line.npos) break;
      fields_.push_back(part(line.substr(0, end)));
    }
    fields_.push_back(part(line));
  }

  // Splits a line of a record of RFC 4180; returns whether it ends the record. Quotes within a field that is not
  // quoted are part of it.
  bool split_csv(std::string_view line) {
    const std::string_view all = line;
    if (!open_) {
      fields_.clear();
      unquoted_.clear();
      ends_.clear();
    }
    for (bool more = true; more;) {
      if (open_ || line.starts_with('"')) {
        if (!unquote(line)) return false;
        const bool ends = line.empty() || line.starts_with(separator_);
        if (!ends && !begun_) check_separator(all, line.substr(0, 1));
        require<DataError>(
            ends,
            "text after the end of a quoted field; quote all of the field, and double the quotes in it");
      } else {
        const std::string_view field = line.substr(0, line.find(separator_));
        unquoted_ += field;
        line.remove_prefix(field.size());
      }
      ends_.push_back(unquoted_.size());
      more = !line.empty();
      if (more) line.remove_prefix(1);
    }
    for (std::size_t i = 0, start = 0; i < ends_.size(); start = ends_[i++])
      fields_.push_back(std::string_view(unquoted_).substr(start, ends_[i] - start));
    return true;
  }

  // Takes a quoted field from the line, or what the line has of it; returns whether it ends there.
  bool unquote(std::string_view& line) {
    line.remove_prefix(open_ ? 0 : 1);
    for (;; line.remove_prefix(2)) {
      const std::size_t quote = line.find('"');
      unquoted_ += line.substr(0, quote);
      open_ = quote == line.npos;
      if (open_) break;
      line.remove_prefix(quote);
      if (!line.starts_with("\"\"")) {
        line.remove_prefix(1);
        return true;
      }
      unquoted_ += '"';
    }
    unquoted_ += '\n';
    if (unquoted_.size() <= LineReader::kMaxLine) return false;
    failed_ = true;
    open_ = false;
    throw DataError(fmt::format("a quoted field does not end within {} bytes; add the closing quote",
                                LineReader::kMaxLine));
  }

  void read(const TableColumns& columns, SequenceReader& sequence) {
    texts_.clear();
    for (const std::size_t number : columns.numbers()) texts_.push_back(fields_[number]);
    sequence.columns(texts_);
  }

  const bool csv_;
  std::string separator_;
  const bool given_, cut_, all_;
  TableColumns input_, target_;
  bool header_, begun_ = false, failed_ = false, open_ = false;
  std::size_t width_ = std::numeric_limits<std::size_t>::max();  // columns of the header
  std::vector<std::string_view> fields_, texts_;
  std::string unquoted_;
  std::vector<std::size_t> ends_;  // of fields in unquoted_
};

}  // namespace

std::unique_ptr<RowFormat> separated_format(const TableOptions& options, bool csv) {
  return std::make_unique<Separated>(options, csv);
}

}  // namespace thimble
