#include "train/data/files/file_source.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "thimble/engine/error.h"
#include "train/data/files/vocabulary.h"

namespace thimble {

constexpr const char* kKeys[] = {"file", "validation_file", "test_file"};

FileSource::FileSource(const char* task, const DataTexts& texts)
    : Source({.name = task,
              .file = texts.main.name,
              .validation_file = texts.validation ? texts.validation->name : "",
              .test_file = texts.test ? texts.test->name : "",
              .vocabulary_file = texts.vocabulary ? texts.vocabulary->name : "",
              .options = texts.options}) {}

DataConfig FileSource::sizes(DataConfig wanted) const {
  require<DataError>(wanted.train >= 1,
                     "task {}: data.train is 0, and a file has no unlimited sequences; set data.train=all",
                     config_.name);
  for (const Split split : {Split::train, Split::validation, Split::test})
    wanted.size(split) = std::min(wanted.size(split), rows(split));
  return wanted;
}

void FileSource::require_rows(Split split) const {
  const std::string& reason = missing_[static_cast<std::size_t>(split)];
  const std::string own = split == Split::train ? "" : fmt::format(" or task.{}_file", split_name(split));
  require<DataError>(reason.empty(),
                     "{}\nso the {} split is empty; restore the file, or set another with task.file{}=FILE",
                     reason, split_name(split), own);
}

void FileSource::read_files(const DataTexts& texts, Problems& problems, bool trained, const Read& read) {
  const auto files = texts.rows();
  for (const DataText* file : files) given_.push_back({file == nullptr ? "" : file->name, 0});
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const std::uint32_t before = stored();
    if (files[i] != nullptr) {
      Problems own;
      files_.push_back({.key = kKeys[i], .path = files[i]->name});
      unreadable_[i] = files[i]->unreadable;
      if (unreadable_[i].empty()) read(i, *files[i], trained ? own : problems, files_.back());
      if (unreadable_[i].empty()) unreadable_[i] = own.text();
      if (!unreadable_[i].empty()) take_back(i, before);
    }
    given_[i].end = stored();
  }
}

std::size_t FileSource::file_of(std::uint32_t stored) const {
  std::size_t file = 0;
  while (stored >= given_[file].end) ++file;
  return file;
}

std::size_t FileSource::split_of(std::size_t file, std::uint64_t hash) const {
  if (is_hypotheses_) return 2;
  if (file > 0) return file;
  const auto split = static_cast<std::size_t>(split_of_hash(hash));
  return split == 0 || given_[split].name.empty() ? split : 0;  // else that split has a file of its own
}

std::array<std::vector<std::uint32_t>, 3> FileSource::ordered(std::span<const std::uint64_t> hashes,
                                                              std::string_view unit, std::string_view remedy,
                                                              bool trained) {
  std::array<std::vector<std::uint32_t>, 3> found;
  for (std::uint32_t i = 0; i < stored(); ++i)
    if (!is_varied(i)) found[split_of(file_of(i), input_hashes_[i])].push_back(i);
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const auto index = static_cast<std::size_t>(split);
    std::ranges::sort(found[index], {}, [&](std::uint32_t i) { return std::pair(hashes[i], i); });
    if (!found[index].empty()) continue;
    const std::size_t from = given_[index].name.empty() ? 0 : index;
    set_missing(
        split, from,
        fmt::format("none of the {} {}s is in the {} split; add {}s{}{}",
                    given_[from].end - (from > 0 ? given_[from - 1].end : 0), unit, split_name(split), unit,
                    split == Split::train ? "" : fmt::format(", or set task.{}", kKeys[index]), remedy),
        trained);
  }
  return found;
}

std::vector<std::int32_t> FileSource::number_tokens(const Vocabulary& vocabulary,
                                                    std::vector<std::int64_t> counts) {
  constexpr std::int64_t kMaxTokens = 65536;
  const auto is_kept = [&](std::int32_t number) {
    return counts[static_cast<std::size_t>(number)] >= options().least_count();
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
  if (options().has_unknown() && !vocabulary.fixed() && !std::ranges::binary_search(tokens_, kUnknownToken))
    tokens_.insert(std::ranges::lower_bound(tokens_, kUnknownToken), std::string(kUnknownToken));
  if (!vocabulary.fixed() && std::ssize(tokens_) > kMaxTokens) {
    const auto found = std::ssize(tokens_) - (options().has_unknown() ? 1 : 0);
    std::ranges::sort(counts, std::greater());
    throw DataError(fmt::format(
        "{0}: 1 problem\n{0}: {1} different tokens; the maximum is {2}; replace rare ones with task.min_count={3}",
        given_[0].name, found, kMaxTokens, counts[kMaxTokens - 1] + 1));
  }
  if (const auto unknown = std::ranges::find(tokens_, kUnknownToken);
      options().has_unknown() && unknown != tokens_.end())
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

void FileSource::set_missing(Split split, std::size_t from, const std::string& why, bool trained) {
  std::string& reason = missing_[static_cast<std::size_t>(split)];
  reason = unreadable_[from].empty() ? fmt::format("{0}: 1 problem\n{0}: {1}", given_[from].name, why)
                                     : unreadable_[from];
  if (!trained) throw DataError(reason);
}

void FileSource::set_chance(std::span<const std::int64_t> answers) {
  const auto all = std::reduce(answers.begin(), answers.end());
  if (all > 0) chance_ = static_cast<double>(std::ranges::max(answers)) / static_cast<double>(all);
}

double FileSource::distinct_inputs() const {
  Hashes distinct;
  for (std::uint32_t row = 0; row < stored() && !has_windows_; ++row)
    if (!is_varied(row)) distinct.insert(input_hashes_[row]);
  if (has_windows_)
    for (const Split split : {Split::train, Split::validation, Split::test})
      add_inputs(split, rows(split), std::numeric_limits<double>::infinity(), distinct);
  return static_cast<double>(distinct.size());
}

std::int64_t Coincidences::*FileSource::coincidence(Split split, std::int64_t index, const Example& e,
                                                    const Hashes& texts) const {
  if (texts.contains(text_hash(split, index))) return &Coincidences::equal_lines;
  if (unknown_ != kIgnore && std::ranges::find(e.input, unknown_) != e.input.end())
    return &Coincidences::equal_unknown;
  return has_windows_ ? &Coincidences::equal_windows : &Coincidences::equal_tokens;
}

DataTexts open_files(const TaskConfig& config, const DataRecord* trained) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
  const auto text = [&](const std::string& path, const char* key) {
    DataText opened{.name = path};
    try {
      opened.file = std::make_shared<InputFile>(path);
      require<FileError>(opened.file->size() <= kMaxBytes, "{}: {} bytes; {} is the most", path,
                         opened.file->size(), kMaxBytes);
    } catch (const FileError& e) {
      if (trained == nullptr)
        throw DataError(fmt::format("{}; set another with task.{}=FILE", e.what(), key));
      opened.unreadable = e.what();
      if (!std::filesystem::exists(path)) opened.unreadable = path + ": the data file of the run is gone";
    }
    return opened;
  };
  const auto optional = [&](const std::string& path, const char* key) {
    return path.empty() ? std::nullopt : std::optional(text(path, key));
  };
  return {.main = text(config.file, kKeys[0]),
          .validation = optional(config.validation_file, kKeys[1]),
          .test = optional(config.test_file, kKeys[2]),
          .vocabulary = optional(config.vocabulary_file, "vocabulary_file"),
          .options = config.options};
}

std::shared_ptr<const Source> file_source(const TaskConfig& config, Layout layout, const DataRecord* record) {
  std::optional<DataRecord> trained;
  if (record != nullptr) {
    const std::string mismatch = split_rule_mismatch(*record);
    require<DataError>(mismatch.empty(), "{}: the model was trained on it, but {}", config.file, mismatch);
    trained = *record;
    if (layout == Layout::seq2seq && trained->vocabulary.size() > 2)
      trained->vocabulary.resize(trained->vocabulary.size() - 2);  // without <begin> and <end>
  }
  try {
    return find_task(config.name).open(config, trained ? &*trained : nullptr);
  } catch (const FileError& e) {  // while it is read
    throw DataError(e.what());
  }
}

}  // namespace thimble
