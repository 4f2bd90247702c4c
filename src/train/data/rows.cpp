#include "train/data/rows.h"

#include <algorithm>
#include <functional>

#include "thimble/engine/error.h"
#include "train/data/table/table_reader.h"

namespace thimble {

void Rows::require_rows(Split split) const {
  const std::string& reason = missing_[static_cast<std::size_t>(split)];
  const std::string own = split == Split::train ? "" : fmt::format(" or task.{}_file", split_name(split));
  require<DataError>(reason.empty(),
                     "{}\nso the {} split is empty; restore the file, or set another with task.file{}=FILE",
                     reason, split_name(split), own);
}

std::size_t Rows::split_of(std::size_t file, std::uint64_t hash) const {
  if (file > 0) return file;
  const auto split = static_cast<std::size_t>(split_of_hash(hash));
  return split == 0 || files_[split].name.empty() ? split : 0;  // else that split has a file of its own
}

std::vector<std::int32_t> Rows::number_tokens(const TableVocabulary& vocabulary,
                                              std::vector<std::int64_t> counts) {
  constexpr std::int64_t kMaxTokens = 65536;
  const auto is_kept = [&](std::int32_t number) {
    return counts[static_cast<std::size_t>(number)] >= options_.least_count();
  };
  const auto sorted = vocabulary.sorted();
  std::vector<std::int32_t> ids(vocabulary.size(), kIgnore);
  tokens_.resize(vocabulary.fixed() ? vocabulary.size() : 0);
  for (const auto& [token, number] : sorted) {
    if (vocabulary.fixed())
      tokens_[static_cast<std::size_t>(number)] = token;
    else if (is_kept(number))
      tokens_.emplace_back(token);
  }
  if (options_.has_unknown() && !vocabulary.fixed() && !std::ranges::binary_search(tokens_, kUnknownToken))
    tokens_.insert(std::ranges::lower_bound(tokens_, kUnknownToken), std::string(kUnknownToken));
  if (!vocabulary.fixed() && std::ssize(tokens_) > kMaxTokens) {
    const auto found = std::ssize(tokens_) - (options_.has_unknown() ? 1 : 0);
    std::ranges::sort(counts, std::greater());
    throw DataError(fmt::format(
        "{0}: 1 problem\n{0}: {1} different tokens; the maximum is {2}; replace rare ones with task.min_count={3}",
        files_[0].name, found, kMaxTokens, counts[kMaxTokens - 1] + 1));
  }
  if (const auto unknown = std::ranges::find(tokens_, kUnknownToken);
      options_.has_unknown() && unknown != tokens_.end())
    unknown_ = static_cast<std::int32_t>(unknown - tokens_.begin());
  std::int32_t next = 0;
  for (const auto& [token, number] : sorted) {
    std::int32_t& id = ids[static_cast<std::size_t>(number)];
    if (vocabulary.fixed()) {
      id = number;
    } else if (!is_kept(number)) {
      id = unknown_;
    } else {
      if (next == unknown_ && token != kUnknownToken) ++next;
      id = next++;
    }
  }
  return ids;
}

void Rows::set_missing(Split split, std::size_t from, const std::string& why, bool trained) {
  std::string& reason = missing_[static_cast<std::size_t>(split)];
  reason = unreadable_[from].empty() ? fmt::format("{0}: 1 problem\n{0}: {1}", files_[from].name, why)
                                     : unreadable_[from];
  if (!trained) throw DataError(reason);
}

const Rows& rows_of(const TaskConfig& config) {
  require<DataError>(config.rows != nullptr,
                     "task {}: its data files are not open; read the config with open_config", config.name);
  return *config.rows;
}

TableTexts open_files(const TaskConfig& config, const DataRecord* trained) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
  const auto text = [&](const std::string& path) {
    TableText opened{.name = path};
    try {
      opened.file = std::make_shared<InputFile>(path);
      require<FileError>(opened.file->size() <= kMaxBytes, "{}: {} bytes; {} is the most", path,
                         opened.file->size(), kMaxBytes);
    } catch (const FileError& e) {
      if (trained == nullptr || !trained->known()) throw DataError(e.what());
      opened.unreadable = e.what();
    }
    return opened;
  };
  const auto optional = [&](const std::string& path) {
    return path.empty() ? std::nullopt : std::optional(text(path));
  };
  return {.main = text(config.file),
          .validation = optional(config.validation_file),
          .test = optional(config.test_file),
          .vocabulary = optional(config.vocabulary_file),
          .options = config.options};
}

std::shared_ptr<const Rows> open_rows(const TaskConfig& config, Layout layout, const DataRecord* trained) {
  const Task& task = find_task(config.name);
  try {
    if (trained == nullptr || !trained->known()) return task.open(config, nullptr);
    const std::string mismatch = split_rule_mismatch(*trained);
    require<DataError>(mismatch.empty(), "{}: the model was trained on it, but {}", config.file, mismatch);
    DataRecord record = *trained;
    if (layout == Layout::seq2seq && record.vocabulary.size() > 2)
      record.vocabulary.resize(record.vocabulary.size() - 2);  // without <begin> and <end>
    return task.open(config, &record);
  } catch (const FileError& e) {  // while it is read
    throw DataError(e.what());
  }
}

namespace tasks {

void check_rows(const TaskConfig& config) { rows_of(config); }
std::vector<std::string> row_tokens(const TaskConfig& config) { return rows_of(config).tokens(); }
ExampleSize longest_row(const TaskConfig& config) { return rows_of(config).longest(); }
double count_rows(const TaskConfig& config) { return static_cast<double>(rows_of(config).rows()); }
double row_chance(const TaskConfig& config) { return rows_of(config).chance(); }

void row_at(const TaskConfig& config, std::int64_t index, Example& example) {
  rows_of(config).example(index, example);
}

}  // namespace tasks

}  // namespace thimble
