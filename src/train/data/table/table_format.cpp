#include "train/data/table/table_format.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "thimble/engine/error.h"
#include "train/files/text/format.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

bool is_number(const std::string& part) { return parse_number<std::uint16_t>(part).has_value(); }

void check_tokens(std::string_view key, const ColumnTokens& tokens, const std::string& columns) {
  const std::size_t count = parts_of(columns).size();
  require<DataError>(tokens.size() == 1 || tokens.size() == count,
                     "task.{0}_tokens names {1} ways for {2}; name one, or one for each column of task.{0}",
                     key, tokens.size(), counted(static_cast<std::int64_t>(count), "column"));
}

}  // namespace

std::vector<std::string> parts_of(std::string_view spec) {
  const std::vector<std::string_view> parts = split_at(',', spec);
  return {parts.begin(), parts.end()};
}

TableColumns::TableColumns(std::string_view key, const std::string& spec, std::size_t usual) : key_(key) {
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

std::size_t TableColumns::last() const { return std::ranges::max(numbers_); }

void TableColumns::find(const std::vector<std::string_view>& all, std::string_view what) {
  const std::string_view numbers =
      what == "column" ? "; columns can be numbers, from 0, with task.header=true" : "";
  for (const std::string& name : names_) {
    const auto found = std::ranges::find(all, name);
    require<DataError>(found != all.end(), "{}: no {} {}{}; there are {}{}", key_, what, printable(name),
                       did_you_mean(name, all), fmt::join(all, ", "), numbers);
    require<DataError>(std::ranges::count(all, name) == 1, "{}: {} is the name of columns {} and {}{}", key_,
                       printable(name), found - all.begin(),
                       std::find(found + 1, all.end(), name) - all.begin(), numbers);
    numbers_.push_back(static_cast<std::size_t>(found - all.begin()));
  }
  names_.clear();
}

TableFormat format_of(const std::string& name, const TableOptions& options) {
  constexpr std::pair<std::string_view, TableFormat> kExtensions[] = {
      {".tsv", TableFormat::tsv},     {".txt", TableFormat::tsv},    {".csv", TableFormat::csv},
      {".jsonl", TableFormat::jsonl}, {".json", TableFormat::jsonl}, {".conllu", TableFormat::conllu},
      {".conll", TableFormat::conll}, {".bio", TableFormat::conll},  {".iob", TableFormat::conll}};
  if (options.format != TableFormat::by_name) return options.format;
  for (const auto& [extension, format] : kExtensions)
    if (name.ends_with(extension)) return format;
  throw DataError(
      "unknown format; the name must end in .tsv, .txt, .csv, .jsonl, .conllu, .conll, .bio or .iob, or set task.format");
}

std::unique_ptr<RowFormat> row_format(const DataText& file, const TableOptions& options) {
  const TableFormat format = format_of(file.name, options);
  check_tokens("input", options.input_tokens, options.input);
  check_tokens("target", options.target_tokens, options.target);
  const bool separated = format == TableFormat::tsv || format == TableFormat::csv;
  require<DataError>(
      separated || (options.separator.empty() && !options.header),
      "task.separator and task.header have no effect on JSON Lines, CoNLL-U and conll; remove them");
  const bool cut =
      options.input_tokens != Tokenization::spaces || options.target_tokens != Tokenization::spaces;
  require<DataError>(
      separated || format == TableFormat::jsonl || !cut,
      "task.input_tokens and task.target_tokens have no effect on CoNLL-U and conll, whose lines are tokens; remove them");
  if (separated && options.separator.empty()) refuse_sentences(file, format == TableFormat::csv);
  if (separated) return separated_format(options, format == TableFormat::csv);
  if (format == TableFormat::jsonl) return json_lines_format(file, options);
  return sentences_format(options, format == TableFormat::conllu);
}

}  // namespace thimble
