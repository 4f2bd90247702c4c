#include "train/data/table/table.h"

#include <algorithm>

#include "thimble/engine/error.h"
#include "train/data/layout.h"
#include "train/data/table/table_reader.h"
#include "train/files/text/text.h"

namespace thimble {

Table::Table(const TableTexts& texts, const DataRecord* trained) : Rows(texts.options) {
  disjoint_ = !texts.validation && !texts.test;
  const bool known = trained != nullptr && trained->known();
  assign_splits(read_files(texts, known ? trained : nullptr), known);
  if (known) longest_ = trained->longest;
  measure();
}

std::vector<RowHash> Table::read_files(const TableTexts& texts, const DataRecord* trained) {
  TableProblems problems;
  TableVocabulary vocabulary(options_.has_unknown());
  if (trained != nullptr) vocabulary.read(trained->vocabulary);
  std::optional<DataFile> vocabulary_file;
  if (texts.vocabulary) {
    TableProblems ignored;
    vocabulary_file = {.key = "vocabulary_file", .path = texts.vocabulary->name};
    TableVocabulary unused(false);
    if (texts.vocabulary->unreadable.empty())
      (trained == nullptr ? vocabulary : unused)
          .read(*texts.vocabulary, trained == nullptr ? problems : ignored, *vocabulary_file);
  }
  const TableText* const files[] = {&texts.main, texts.validation ? &*texts.validation : nullptr,
                                    texts.test ? &*texts.test : nullptr};
  constexpr const char* kKeys[] = {"file", "validation_file", "test_file"};
  TableRows rows{.ids = ids_, .ends = ends_, .lines = lines_, .counts = counts_};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t ids = ids_.size(), count = lines_.size();
    TableProblems own;
    if (files[i] != nullptr) {
      DataFile& source = sources_.emplace_back(DataFile{.key = kKeys[i], .path = files[i]->name});
      unreadable_[i] = files[i]->unreadable;
      if (unreadable_[i].empty())
        read_rows(*files[i], options_, vocabulary, trained != nullptr ? own : problems, source, rows);
      if (unreadable_[i].empty()) unreadable_[i] = own.text();
    }
    if (!unreadable_[i].empty()) {
      ids_.resize(ids);
      ends_.resize(2 * count);
      lines_.resize(count);
      rows.hashes.resize(count);
    }
    files_.push_back({files[i] == nullptr ? "" : files[i]->name, static_cast<std::uint32_t>(lines_.size())});
  }
  if (vocabulary_file) sources_.push_back(*vocabulary_file);
  problems.finish();
  set_ids(vocabulary, rows.hashes);
  return std::move(rows.hashes);
}

// Gives tokens their ids.
void Table::set_ids(const TableVocabulary& vocabulary, std::span<const RowHash> hashes) {
  std::vector<std::int64_t> counts(vocabulary.size());
  for (std::uint32_t row = 0, file = 0; row < lines_.size(); ++row) {
    while (row >= files_[file].end) ++file;
    if (options_.vocabulary == VocabularyOf::training && split_of(file, hashes[row].input) != 0) continue;
    for (const auto& tokens : {input(row), target(row)})
      for (const std::int32_t id : tokens)
        if (id != kIgnore) ++counts[static_cast<std::size_t>(id)];
  }
  const std::vector<std::int32_t> ids = number_tokens(vocabulary, counts);
  for (std::int32_t& id : ids_)
    if (id != kIgnore) id = ids[static_cast<std::size_t>(id)];
}

ExampleSize Table::size(std::uint32_t row) const {
  const std::uint32_t begin = row == 0 ? 0 : ends_[2 * row - 1];
  return {ends_[2 * row] - begin, ends_[2 * row + 1] - ends_[2 * row]};
}

std::span<const std::int32_t> Table::input(std::uint32_t row) const {
  const auto n = static_cast<std::size_t>(size(row).input);
  return {ids_.data() + ends_[2 * row] - n, n};
}

std::span<const std::int32_t> Table::target(std::uint32_t row) const {
  return {ids_.data() + ends_[2 * row], static_cast<std::size_t>(size(row).target)};
}

std::string Table::stored_where(std::uint32_t row) const {
  auto file = files_.begin();
  while (row >= file->end) ++file;
  return fmt::format("{}:{}", file->name, lines_[row]);
}

void Table::assign_splits(std::span<const RowHash> hashes, bool trained) {
  std::vector<std::uint32_t> rows[3];
  for (std::uint32_t row = 0, file = 0; row < lines_.size(); ++row) {
    while (row >= files_[file].end) ++file;
    rows[split_of(file, hashes[row].input)].push_back(row);
  }
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const auto index = static_cast<std::size_t>(split);
    auto& found = rows[index];
    std::ranges::sort(found, {}, [&](std::uint32_t row) { return std::pair(hashes[row].row, row); });
    const std::size_t from = files_[index].name.empty() ? 0 : index;
    if (found.empty()) {
      const std::string remedy =
          split == Split::train ? "" : fmt::format(", or set task.{}_file", split_name(split));
      set_missing(
          split, from,
          fmt::format("none of the {} lines is in the {} split; add lines{}",
                      files_[from].end - (from > 0 ? files_[from - 1].end : 0), split_name(split), remedy),
          trained);
    }
    splits_[index] = std::ssize(found);
    order_.insert(order_.end(), found.begin(), found.end());
  }
}

void Table::measure() {
  std::vector<std::int64_t> counts(tokens_.size());
  std::int64_t answers = 0;
  for (std::uint32_t row = 0; row < order_.size(); ++row) {
    const ExampleSize n = size(row);
    longest_ = {std::max(longest_.input, n.input), std::max(longest_.target, n.target)};
    for (const std::int32_t id : target(row)) {
      if (id == kIgnore) continue;
      ++counts[static_cast<std::size_t>(id)];
      ++answers;
    }
  }
  if (answers == 0) return;  // no file could be read
  chance_ = static_cast<double>(*std::ranges::max_element(counts)) / static_cast<double>(answers);
}

void Table::example(std::int64_t row, Example& out) const {
  const auto tokens = input(stored(row)), answers = target(stored(row));
  out.input.assign(tokens.begin(), tokens.end());
  out.target.assign(answers.begin(), answers.end());
}

double Table::bytes() const {
  const std::size_t numbers = ids_.size() + ends_.size() + lines_.size() + order_.size();
  const std::size_t of_reading =
      lines_.size() * (sizeof(RowHash) + sizeof(std::uint32_t));  // hashes, and rows by split
  return static_cast<double>(numbers * sizeof(std::uint32_t) + of_reading +
                             tokens_.size() * sizeof(std::string));
}

std::optional<Layout> Table::suitable_layout() const {
  bool sequence = true, position = true, next = true;
  for (std::uint32_t row = 0; row < order_.size(); ++row) {
    const ExampleSize n = size(row);
    sequence &= n.target == 1;
    position &= n.target == n.input;
    next &= std::ranges::count(target(row), kIgnore) == 0;
  }
  if (sequence) return Layout::sequence;
  if (position) return Layout::position;
  return next ? std::optional(Layout::next) : std::nullopt;
}

void Table::check(Layout layout) const {
  TableProblems problems;
  const std::optional<Layout> suitable = suitable_layout();
  const std::string remedy = suitable ? layout_remedy(layout, *suitable) : "";
  for (std::uint32_t row = 0, file = 0; row < lines_.size(); ++row) {
    while (row >= files_[file].end) ++file;
    const bool sparse = std::ranges::count(target(row), kIgnore) > 0;
    std::string mismatch = layout_mismatch(layout, size(row), sparse);
    if (mismatch.empty()) continue;
    if (sparse && (layout == Layout::next || layout == Layout::seq2seq) && !options_.no_answer.empty())
      mismatch += fmt::format("; if {0} is a token here, set task.no_answer=\"\", or write \\{0} for it",
                              printable(options_.no_answer));
    problems.add(files_[file].name, lines_[row], mismatch + remedy, "layout");
  }
  problems.finish();
}

}  // namespace thimble
