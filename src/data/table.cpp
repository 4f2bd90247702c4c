#include "thimble/data/table.h"

#include <algorithm>
#include <filesystem>

#include "data/table_reader.h"
#include "thimble/core/error.h"
#include "thimble/core/file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace thimble {

namespace {

namespace fs = std::filesystem;

TableText read_text(const std::string& path) {
  constexpr std::uintmax_t kLargest = std::uintmax_t{1} << 30;
  try {
    const fs::file_status status = fs::status(path);
    require<DataError>(!fs::exists(status) || fs::is_regular_file(status), "{}: is {}, not a data file", path,
                       fs::is_directory(status) ? "a directory" : "a pipe or a device");
    if (fs::exists(status)) {
      const std::uintmax_t size = fs::file_size(path);
      require<DataError>(size <= kLargest, "{}: {} bytes; {} is the most", path, size, kLargest);
    }
    return {path, read_file(path)};
  } catch (const FileError& e) {
    throw DataError(e.what());
  } catch (const fs::filesystem_error& e) {
    throw DataError(fmt::format("{}: cannot be read: {}", path, e.code().message()));
  }
}

// What keeps an example from being laid out like that; "" when nothing does.
std::string misfit(Layout layout, const Example& example) {
  const ExampleSize size{std::ssize(example.input), std::ssize(example.target)};
  if (layout == Layout::position && size.input != size.target)
    return fmt::format("{} answers for {} tokens: one output per position needs one each", size.target,
                       size.input);
  if (layout == Layout::sequence && size.target != 1)
    return fmt::format("{} answers: one output per sequence needs exactly one", size.target);
  if ((layout == Layout::next || layout == Layout::pairs) && std::ranges::count(example.target, kIgnore) > 0)
    return "a position without an answer: one output per next token needs all of them";
  return "";
}

}  // namespace

Table::Table(const TableTexts& texts) : disjoint_(!texts.validation && !texts.test) {
  TableProblems problems;
  TableVocabulary vocabulary;
  if (texts.vocabulary) vocabulary.read(*texts.vocabulary, problems);
  const TableText* const files[] = {&texts.main, texts.validation ? &*texts.validation : nullptr,
                                    texts.test ? &*texts.test : nullptr};
  for (const TableText* file : files) {
    if (file != nullptr) read_rows(*file, vocabulary, problems, ids_, ends_);
    files_.push_back({file == nullptr ? "" : file->name, static_cast<std::uint32_t>(ends_.size() / 2)});
  }
  problems.finish();

  // In order of their bytes, unless a file gives the order.
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

  assign_splits();
  measure();
}

ExampleSize Table::size(std::uint32_t row) const {
  const std::uint32_t begin = row == 0 ? 0 : ends_[2 * row - 1];
  return {ends_[2 * row] - begin, ends_[2 * row + 1] - ends_[2 * row]};
}

void Table::assign_splits() {
  std::vector<std::uint32_t> rows[3];
  for (std::uint32_t file = 0, row = 0; file < 3; ++file) {
    for (; row < files_[file].end; ++row) {
      const ExampleSize n = size(row);
      const auto* const input = ids_.data() + ends_[2 * row] - n.input;
      auto split = static_cast<std::size_t>(file);
      if (file == 0) split = static_cast<std::size_t>(home_split({input, static_cast<std::size_t>(n.input)}));
      if (file == 0 && !files_[split].name.empty()) split = 0;  // that split has a file of its own
      rows[split].push_back(row);
    }
  }
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const auto& found = rows[static_cast<std::size_t>(split)];
    const std::string remedy = split == Split::train ? "" : fmt::format(", or a {}_file", split_name(split));
    require<DataError>(!found.empty(),
                       "{}: 1 problem\n{}: none of the {} lines falls to the {} split; give more lines{}",
                       files_[0].name, files_[0].name, files_[0].end, split_name(split), remedy);
    splits_[static_cast<std::size_t>(split)] = std::ssize(found);
    order_.insert(order_.end(), found.begin(), found.end());
  }
}

void Table::measure() {
  std::vector<std::int64_t> counts(tokens_.size());
  std::int64_t answers = 0;
  for (std::uint32_t row = 0; row < order_.size(); ++row) {
    const ExampleSize n = size(row);
    longest_ = {std::max(longest_.input, n.input), std::max(longest_.target, n.target)};
    for (std::uint32_t i = ends_[2 * row]; i < ends_[2 * row + 1]; ++i) {
      if (ids_[i] == kIgnore) continue;
      ++counts[static_cast<std::size_t>(ids_[i])];
      ++answers;
    }
  }
  chance_ = static_cast<double>(*std::ranges::max_element(counts)) / static_cast<double>(answers);
}

void Table::example(std::int64_t row, Example& out) const {
  read(order_[static_cast<std::size_t>(row)], out);
}

void Table::read(std::uint32_t row, Example& out) const {
  const ExampleSize n = size(row);
  const auto target = ids_.begin() + ends_[2 * row];
  out.input.assign(target - n.input, target);
  out.target.assign(target, target + n.target);
}

std::string Table::hash() const {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  const auto add = [&](const auto& values) {
    XXH3_64bits_update(&state, values.data(), values.size() * sizeof(values[0]));
  };
  for (const std::string& token : tokens_) {
    add(token);
    add(std::string(1, '\n'));
  }
  add(splits_);
  add(order_);
  add(ends_);
  add(ids_);
  return fmt::format("{:016x}", XXH3_64bits_digest(&state));
}

void Table::check(Layout layout) const {
  TableProblems problems;
  Example example;
  for (std::uint32_t row = 0, file = 0, first = 0; row < order_.size(); ++row) {
    while (row == files_[file].end) first = files_[file++].end;
    read(row, example);
    const std::string rule = misfit(layout, example);
    if (!rule.empty()) problems.add(files_[file].name, row - first + 1, rule);
  }
  problems.finish();
}

Table load_table(const TaskConfig& config) {
  const auto optional = [](const std::string& path) {
    return path.empty() ? std::nullopt : std::optional(read_text(path));
  };
  return Table({.main = read_text(config.file),
                .validation = optional(config.validation_file),
                .test = optional(config.test_file),
                .vocabulary = optional(config.vocabulary_file)});
}

}  // namespace thimble
