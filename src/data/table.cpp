#include "thimble/data/table.h"

#include <algorithm>

#include "data/layout.h"
#include "data/table_reader.h"
#include "thimble/core/error.h"
#include "thimble/core/file.h"
#include "thimble/core/hash.h"

namespace thimble {

namespace {

TableText read_text(const std::string& path) {
  constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 30;
  try {
    return {.name = path, .text = read_file(path, kMaxBytes)};
  } catch (const FileError& e) {
    throw DataError(e.what());
  }
}

DataFile data_file(const char* key, const TableText& text) {
  DataFile file{.key = key, .path = text.name, .bytes = text.text.size()};
  if (text.unreadable.empty()) file.hash = hash_digits(text.text);
  return file;
}

}  // namespace

Table::Table(const TableTexts& texts, const DataRecord* trained)
    : disjoint_(!texts.validation && !texts.test) {
  const bool known = trained != nullptr && trained->known();
  read_files(texts, known ? trained : nullptr);
  assign_splits(known);
  if (known) longest_ = trained->longest;
  measure();
}

void Table::read_files(const TableTexts& texts, const DataRecord* trained) {
  TableProblems problems;
  TableVocabulary vocabulary;
  if (trained != nullptr)
    vocabulary.read(trained->vocabulary);
  else if (texts.vocabulary)
    vocabulary.read(*texts.vocabulary, problems);
  const TableText* const files[] = {&texts.main, texts.validation ? &*texts.validation : nullptr,
                                    texts.test ? &*texts.test : nullptr};
  constexpr const char* kKeys[] = {"file", "validation_file", "test_file"};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t ids = ids_.size(), ends = ends_.size();
    TableProblems own;
    if (files[i] != nullptr) {
      sources_.push_back(data_file(kKeys[i], *files[i]));
      unreadable_[i] = files[i]->unreadable;
      if (unreadable_[i].empty())
        read_rows(*files[i], vocabulary, trained != nullptr ? own : problems, ids_, ends_);
      if (unreadable_[i].empty()) unreadable_[i] = own.text();
    }
    if (!unreadable_[i].empty()) {
      ids_.resize(ids);
      ends_.resize(ends);
    }
    files_.push_back(
        {files[i] == nullptr ? "" : files[i]->name, static_cast<std::uint32_t>(ends_.size() / 2)});
  }
  if (texts.vocabulary) sources_.push_back(data_file("vocabulary_file", *texts.vocabulary));
  problems.finish();

  // Tokens are ordered by their bytes, unless a file or a trained model fixes their ids.
  tokens_.resize(vocabulary.numbers().size());
  std::vector<std::int32_t> renumbered(tokens_.size());
  std::int32_t next = 0;
  for (const auto& [token, number] : vocabulary.numbers()) {
    const std::int32_t id = vocabulary.fixed() ? number : next++;
    renumbered[static_cast<std::size_t>(number)] = id;
    tokens_[static_cast<std::size_t>(id)] = token;
  }
  for (std::int32_t& id : ids_)
    if (id != kIgnore) id = renumbered[static_cast<std::size_t>(id)];
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

std::string Table::where(std::uint32_t row) const {
  std::uint32_t first = 0;
  auto file = files_.begin();
  for (; row >= file->end; ++file) first = file->end;
  return fmt::format("{}:{}", file->name, row - first + 1);
}

void Table::assign_splits(bool trained) {
  std::vector<std::uint32_t> rows[3];
  for (std::uint32_t file = 0, row = 0; file < 3; ++file) {
    for (; row < files_[file].end; ++row) {
      auto split = static_cast<std::size_t>(file);
      if (file == 0) split = static_cast<std::size_t>(split_by_hash(input(row)));
      if (file == 0 && !files_[split].name.empty()) split = 0;  // that split has a file of its own
      rows[split].push_back(row);
    }
  }
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const auto index = static_cast<std::size_t>(split);
    const auto& found = rows[index];
    const std::size_t from = files_[index].name.empty() ? 0 : index;
    if (found.empty()) {
      const std::string remedy =
          split == Split::train ? "" : fmt::format(", or set task.{}_file", split_name(split));
      missing_[index] = unreadable_[from];
      if (missing_[index].empty())
        missing_[index] =
            fmt::format("{}: 1 problem\n{}: none of the {} lines is in the {} split; add lines{}",
                        files_[from].name, files_[from].name, files_[from].end, split_name(split), remedy);
      if (!trained) throw DataError(missing_[index]);
    }
    splits_[index] = std::ssize(found);
    order_.insert(order_.end(), found.begin(), found.end());
  }
}

void Table::require_rows(Split split) const {
  const std::string& reason = missing_[static_cast<std::size_t>(split)];
  const std::string own = split == Split::train ? "" : fmt::format(" or task.{}_file", split_name(split));
  require<DataError>(reason.empty(),
                     "{}\nso the {} split is empty; restore the file, or set another with task.file{}=FILE",
                     reason, split_name(split), own);
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
  const std::uint32_t stored = order_[static_cast<std::size_t>(row)];
  const auto tokens = input(stored), answers = target(stored);
  out.input.assign(tokens.begin(), tokens.end());
  out.target.assign(answers.begin(), answers.end());
}

double Table::bytes() const {
  const std::size_t numbers = ids_.capacity() + ends_.capacity() + order_.capacity();
  return static_cast<double>(numbers * sizeof(std::uint32_t) + tokens_.capacity() * sizeof(std::string));
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
  for (std::uint32_t row = 0, file = 0, first = 0; row < order_.size(); ++row) {
    while (row == files_[file].end) first = files_[file++].end;
    const bool sparse = std::ranges::count(target(row), kIgnore) > 0;
    if (const std::string mismatch = layout_mismatch(layout, size(row), sparse); !mismatch.empty())
      problems.add(files_[file].name, row - first + 1, mismatch + remedy, "layout");
  }
  problems.finish();
}

std::shared_ptr<const Table> open_table(TaskConfig& config, Layout layout, const DataRecord* trained) {
  if (trained == nullptr || !trained->known()) return std::make_shared<Table>(load_table(config));
  DataRecord record = *trained;
  if (layout == Layout::seq2seq && record.vocabulary.size() > 2)
    record.vocabulary.resize(record.vocabulary.size() - 2);  // without <begin> and <end>
  for (std::string* path :
       {&config.file, &config.validation_file, &config.test_file, &config.vocabulary_file})
    for (const DataFile& file : trained->files)
      if (!file.moved.empty() && *path == file.path) *path = file.moved;
  return std::make_shared<Table>(load_table(config, &record));
}

Table load_table(const TaskConfig& config, const DataRecord* trained) {
  const auto text = [&](const std::string& path) -> TableText {
    try {
      return read_text(path);
    } catch (const DataError& e) {
      if (trained == nullptr || !trained->known()) throw;
      return {.name = path, .text = "", .unreadable = e.what()};
    }
  };
  const auto optional = [&](const std::string& path) {
    return path.empty() ? std::nullopt : std::optional(text(path));
  };
  return Table({.main = text(config.file),
                .validation = optional(config.validation_file),
                .test = optional(config.test_file),
                .vocabulary = optional(config.vocabulary_file)},
               trained);
}

}  // namespace thimble
