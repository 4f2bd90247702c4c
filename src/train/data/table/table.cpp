#include "train/data/table/table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "thimble/engine/error.h"
#include "train/data/layout.h"
#include "train/data/table/table_format.h"
#include "train/data/table/table_reader.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"

namespace thimble {

Table::Table(const DataTexts& texts, const DataRecord* trained) : FileSource("file", texts) {
  is_hypotheses_ = texts.main.hypotheses.has_value();
  read(texts, trained);
  kinds_.assign(rows_.kind_names.begin(), rows_.kind_names.end());
  disjoint_ = !texts.validation && !texts.test && unknown_ == kIgnore;
  const auto found = ordered(rows_.hashes, row_name(), columns_remedy(), trained != nullptr);
  rows_.hashes = {};
  for (std::size_t split = 0; split < found.size(); ++split) {
    splits_[split] = std::ssize(found[split]);
    order_.insert(order_.end(), found[split].begin(), found[split].end());
  }
  if (trained != nullptr) longest_ = trained->longest;
  measure();
  if (trained == nullptr) return;
  answers_.clear();
  for (const std::string& answer : trained->outputs)
    answers_.push_back(static_cast<std::int32_t>(std::ranges::find(tokens_, answer) - tokens_.begin()));
}

void Table::read(const DataTexts& texts, const DataRecord* trained) {
  Problems problems;
  Vocabulary vocabulary(options().has_unknown(), is_hypotheses_);
  if (trained != nullptr) vocabulary.read(trained->vocabulary);
  std::optional<DataFile> vocabulary_file;
  if (texts.vocabulary) {
    Problems ignored;
    vocabulary_file = {.key = "vocabulary_file", .path = texts.vocabulary->name};
    Vocabulary unused(false);
    if (texts.vocabulary->unreadable.empty())
      (trained == nullptr ? vocabulary : unused)
          .read(*texts.vocabulary, trained == nullptr ? problems : ignored, *vocabulary_file);
  }
  read_files(texts, problems, trained != nullptr && !is_hypotheses_,
             [&](std::size_t, const DataText& file, Problems& own, DataFile& source) {
               const std::uint32_t first = stored();
               read_rows(file, options(), vocabulary, own, source, rows_, input_hashes_);
               if (trained != nullptr) check_answers(*trained, first, file, own);
             });
  if (vocabulary_file) files_.push_back(*vocabulary_file);
  problems.finish();
  set_ids(vocabulary);
}

std::string Table::columns_remedy() const {
  const auto inputs = static_cast<std::uint32_t>(distinct_inputs());
  const TableFormat format =
      files_.empty() || stored() < 10 * inputs ? TableFormat::conllu : format_of(given_[0].name, options());
  const bool is_json = format == TableFormat::jsonl;
  if (!is_json && format != TableFormat::tsv && format != TableFormat::csv) return "";
  const auto given = [](const std::string& columns, const char* usual) {
    return columns.empty() ? std::string(usual) : columns;
  };
  return fmt::format("; {} lines have {}: if the columns are the other way round, set {}", stored(),
                     counted(inputs, "different input"),
                     shell_command({"task.input=" + given(options().target, is_json ? "target" : "1"),
                                    "task.target=" + given(options().input, is_json ? "input" : "0")}));
}

void Table::take_back(std::size_t, std::uint32_t count) {
  input_hashes_.resize(count);
  rows_.lines.resize(count);
  rows_.hashes.resize(count);
  rows_.ends.resize(2 * count);
  rows_.ids.resize(count == 0 ? 0 : rows_.ends.back());
  std::erase_if(rows_.attends, [&](const RowAlignment& one) { return one.row >= count; });
  std::erase_if(rows_.varied, [&](std::uint32_t row) { return row >= count; });
}

// Reports answers of the stored rows from `first` on that the model has no output for.
void Table::check_answers(const DataRecord& trained, std::uint32_t first, const DataText& file,
                          Problems& problems) const {
  if (trained.outputs.empty()) return;
  for (std::uint32_t row = first; row < stored(); ++row)
    for (const std::int32_t id : target(row)) {
      const std::string& answer = trained.vocabulary[static_cast<std::size_t>(std::max(id, 0))];
      if (id == kIgnore || std::ranges::find(trained.outputs, answer) != trained.outputs.end()) continue;
      problems.add(file.name, rows_.lines[row],
                   fmt::format("answer {} is none of the {} that the model was trained to give: {}",
                               printable(answer), trained.outputs.size(),
                               printable(fmt::format("{}", fmt::join(trained.outputs, ", ")))));
    }
}

// Gives tokens their ids.
void Table::set_ids(const Vocabulary& vocabulary) {
  std::vector<std::int64_t> counts(vocabulary.size());
  for (std::uint32_t row = 0; row < stored(); ++row) {
    if (options().vocabulary == VocabularyOf::training && split_of(file_of(row), input_hashes_[row]) != 0)
      continue;
    for (const auto& tokens : {input(row), target(row)})
      for (const std::int32_t id : tokens)
        if (id != kIgnore) ++counts[static_cast<std::size_t>(id)];
  }
  const std::vector<std::int32_t> ids = number_tokens(vocabulary, counts);
  for (std::int32_t& id : rows_.ids)
    if (id != kIgnore) id = ids[static_cast<std::size_t>(id)];
}

ExampleSize Table::stored_size(std::uint32_t row) const {
  const std::uint32_t begin = row == 0 ? 0 : rows_.ends[2 * row - 1];
  return {rows_.ends[2 * row] - begin, rows_.ends[2 * row + 1] - rows_.ends[2 * row]};
}

std::span<const std::int32_t> Table::input(std::uint32_t row) const {
  const auto n = static_cast<std::size_t>(stored_size(row).input);
  return {rows_.ids.data() + rows_.ends[2 * row] - n, n};
}

std::span<const std::int32_t> Table::target(std::uint32_t row) const {
  return {rows_.ids.data() + rows_.ends[2 * row], static_cast<std::size_t>(stored_size(row).target)};
}

std::string Table::stored_where(std::uint32_t row) const {
  return fmt::format("{}:{}", given_[file_of(row)].name, rows_.lines[row]);
}

void Table::measure() {
  std::vector<std::int64_t> counts(tokens_.size());
  for (std::uint32_t row = 0; row < stored(); ++row) {
    const ExampleSize n = stored_size(row);
    longest_ = {std::max(longest_.input, n.input), std::max(longest_.target, n.target)};
    suits_sequence_ &= n.target == 1;
    suits_position_ &= n.target == n.input;
    for (const std::int32_t id : target(row)) {
      suits_next_ &= id != kIgnore;
      if (id != kIgnore && !is_varied(row)) ++counts[static_cast<std::size_t>(id)];
    }
  }
  set_chance(counts);
  for (std::int32_t id = 0; suits_sequence_ && id < std::ssize(counts); ++id)
    if (counts[static_cast<std::size_t>(id)] > 0 || id == unknown_) answers_.push_back(id);
}

void Table::example(std::int64_t row, Example& out) const { stored_example(stored_of(row), out); }

void Table::stored_example(std::uint32_t row, Example& out) const {
  const auto tokens = input(row), answers = target(row);
  out.input.assign(tokens.begin(), tokens.end());
  out.target.assign(answers.begin(), answers.end());
  out.attends.clear();
  const auto first = std::ranges::lower_bound(rows_.attends, row, {}, &RowAlignment::row);
  for (auto one = first; one != rows_.attends.end() && one->row == row; ++one)
    out.attends.push_back(one->alignment);
}

void Table::vary(SampleRng& rng, Layout layout, Example& out) const {
  if (!rows_.varied.empty())
    return stored_example(rows_.varied[static_cast<std::size_t>(rng.below(std::ssize(rows_.varied)))], out);
  const auto shuffle = [&](std::vector<std::int32_t>& tokens) {
    for (std::int64_t i = std::ssize(tokens) - 1; i > 0; --i)
      std::swap(tokens[static_cast<std::size_t>(i)], tokens[static_cast<std::size_t>(rng.below(i + 1))]);
  };
  Example other;
  example(rng.below(rows()), out);
  example(rng.below(rows()), other);
  const bool per_position = longest_.input == longest_.target && out.input.size() == out.target.size();
  if (per_position && other.input.size() != other.target.size()) other = {};
  std::vector<std::int32_t> from(out.input.size()), places(from.size());
  std::iota(from.begin(), from.end(), 0);
  shuffle(from);
  if (layout == Layout::sequence)  // the answer is read where the query is
    for (const Alignment& a : out.attends)
      std::swap(*std::ranges::find(from, a.query), from[static_cast<std::size_t>(a.query)]);
  const auto shuffle_input = [&](std::vector<std::int32_t>& tokens) {
    const std::vector<std::int32_t> before = tokens;
    for (std::size_t i = 0; i < from.size(); ++i) tokens[i] = before[static_cast<std::size_t>(from[i])];
  };
  shuffle_input(out.input);
  if (layout == Layout::position)  // what is asked for at a token stays there
    shuffle_input(out.target);
  else if (out.attends.empty())
    shuffle(out.target);
  const std::int64_t room = longest_.input - std::ssize(out.input);
  const std::int64_t more = rng.below(std::min<std::int64_t>(room, std::ssize(other.input)) + 1);
  for (std::int32_t i = 0; const std::int32_t token : from)
    places[static_cast<std::size_t>(token)] = static_cast<std::int32_t>(more) + i++;
  const auto place = [&](std::int32_t at) {
    return at < std::ssize(places) ? places[static_cast<std::size_t>(at)]
                                   : at + static_cast<std::int32_t>(more);
  };
  for (Alignment& a : out.attends)
    a = {layout == Layout::seq2seq ? a.query : place(a.query), place(a.key), a.kind};
  const auto put = [&](std::vector<std::int32_t>& to, const std::vector<std::int32_t>& tokens) {
    to.insert(to.begin(), tokens.begin(), tokens.begin() + more);
  };
  put(out.input, other.input);
  if (per_position) put(out.target, other.target);
}

std::optional<Layout> Table::suitable_layout() const {
  if (suits_sequence_) return Layout::sequence;
  if (suits_position_) return Layout::position;
  return suits_next_ ? std::optional(Layout::next) : std::nullopt;
}

// Reports alignments outside of the sequences that a model of the layout reads.
void Table::check_alignments(Layout layout, Problems& problems) const {
  for (const auto& [row, a] : rows_.attends) {
    const std::int64_t queries = laid_out_length(layout, stored_size(row)),
                       keys = layout == Layout::seq2seq ? stored_size(row).input : queries;
    if (a.query >= queries || a.key >= keys)
      problems.add(
          given_[file_of(row)].name, rows_.lines[row],
          fmt::format("attends: query {} and key {} must be below {} and {}, as positions count from 0",
                      a.query, a.key, queries, keys),
          "attends");
  }
}

void Table::check(Layout layout) const {
  Problems problems;
  check_alignments(layout, problems);
  problems.finish();
  if (layout == Layout::sequence   ? suits_sequence_
      : layout == Layout::position ? suits_position_
                                   : suits_next_)
    return;
  const std::optional<Layout> suitable = suitable_layout();
  std::string remedy = suitable && !is_hypotheses_ ? layout_remedy(layout, *suitable) : "";
  if (layout == Layout::sequence && rows_.counts.cuts[1] == Cut::apart)
    remedy = "; if a field is one label, set task.target_tokens=field" +
             (remedy.empty() ? "" : "; else" + remedy.substr(1));
  for (std::uint32_t row = 0; row < stored(); ++row) {
    const std::int64_t unanswered = std::ranges::count(target(row), kIgnore);
    if (unanswered == stored_size(row).target) continue;  // a hypothesis without a target
    const bool sparse = unanswered > 0;
    std::string mismatch = layout_mismatch(layout, stored_size(row), sparse);
    if (mismatch.empty()) continue;
    if (sparse && (layout == Layout::next || layout == Layout::seq2seq) && !options().no_answer.empty())
      mismatch += fmt::format("; if {0} is a token here, set task.no_answer=\"\", or write \\{0} for it",
                              printable(options().no_answer));
    problems.add(given_[file_of(row)].name, rows_.lines[row], mismatch + remedy, "layout");
  }
  problems.finish();
}

}  // namespace thimble
