#include "thimble/train/data_record.h"

#include <algorithm>
#include <set>

#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "train/data/data_paths.h"
#include "train/files/hash.h"
#include "train/files/text/text.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

std::string state_text(const DataFile* file) {
  if (file == nullptr) return "none";
  if (file->hash.empty()) return "cannot be read";
  return fmt::format("{} bytes, hash {}", file->bytes, file->hash);
}

const DataFile* find_key(const std::vector<DataFile>& files, const std::string& key) {
  const auto found = std::ranges::find(files, key, &DataFile::key);
  return found == files.end() ? nullptr : &*found;
}

// Returns whether a file has the content of another one, as it was read.
bool has_content(const fs::path& path, const DataFile& file) {
  try {
    return fs::file_size(path) == file.bytes && hash_digits(read_file(path)) == file.hash;
  } catch (const std::exception&) {  // it is not there, or cannot be read
    return false;
  }
}

DataFile parse_file(const Json& json, const fs::path& run) {
  DataFile file{.key = json.at("key").get<std::string>(),
                .path = json.at("path").get<std::string>(),
                .bytes = json.at("bytes").get<std::uint64_t>(),
                .hash = json.at("hash").get<std::string>(),
                .relative = json.value("relative", "")};
  if (file.relative.empty() || run.empty()) return file;
  const fs::path moved = fs::absolute(run / file.relative).lexically_normal();
  if (moved != file.path && has_content(moved, file) && !has_content(file.path, file))
    file.moved = moved.string();
  return file;
}

}  // namespace

DataRecord record_of(const Source& source, Layout layout, std::int64_t max_length, Outputs outputs) {
  constexpr const char* kOrders[] = {"drawn", "sorted", "dealt"};
  const ModelSizes sizes = model_sizes(source, layout, outputs);
  const bool is_file = source.task().open != nullptr;
  DataRecord record{
      .vocabulary = vocabulary_of(source, layout),
      .longest = source.longest(),
      .length = max_length > 0 ? max_length : sizes.length,
      .source_length = sizes.source_length > 0 && max_length > 0 ? max_length : sizes.source_length,
      .split_rule = std::string(is_file ? kSplitRule : ""),
      .files = source.files()};
  for (std::int64_t i = 0; i < sizes.outputs; ++i)
    record.outputs.push_back(
        source.tokens()[static_cast<std::size_t>(source.answers()[static_cast<std::size_t>(i)])]);
  if (source.boundary() != kIgnore)
    record.boundary = source.tokens()[static_cast<std::size_t>(source.boundary())];
  if (is_file) record.step_order = kOrders[static_cast<std::size_t>(source.step_order())];
  return record;
}

Json to_json(const DataRecord& record, const fs::path& run) {
  Json json{{"vocabulary", record.vocabulary},
            {"longest", {{"input", record.longest.input}, {"target", record.longest.target}}},
            {"length", record.length},
            {"source_length", record.source_length},
            {"files", Json::array()}};
  if (!record.split_rule.empty()) json["split_rule"] = record.split_rule;
  if (!record.step_order.empty()) json["step_order"] = record.step_order;
  if (!record.outputs.empty()) json["outputs"] = record.outputs;
  if (!record.boundary.empty()) json["boundary"] = record.boundary;
  for (const DataFile& file : record.files) {
    Json& entry = json["files"].emplace_back(
        Json{{"key", file.key}, {"path", file.path}, {"bytes", file.bytes}, {"hash", file.hash}});
    if (!run.empty())
      entry["relative"] =
          fs::path(file.path).lexically_relative(fs::absolute(run).lexically_normal()).string();
  }
  return json;
}

DataRecord parse_record(const std::string& text, const fs::path& run) {
  try {
    return parse_record(parse_json(text), run);
  } catch (const Json::exception& e) {
    throw DataError(fmt::format("invalid record of the training data: {}", e.what()));
  }
}

DataRecord parse_record(const Json& json, const fs::path& run) {
  DataRecord record;
  try {
    json.at("vocabulary").get_to(record.vocabulary);
    json.at("longest").at("input").get_to(record.longest.input);
    json.at("longest").at("target").get_to(record.longest.target);
    json.at("length").get_to(record.length);
    json.at("source_length").get_to(record.source_length);
    for (const Json& file : json.at("files")) record.files.push_back(parse_file(file, run));
    if (!record.files.empty()) record.split_rule = json.value("split_rule", kIdRule);
    record.step_order = json.value("step_order", "");
    record.outputs = json.value("outputs", record.outputs);
    record.boundary = json.value("boundary", "");
  } catch (const Json::exception& e) {
    throw DataError(fmt::format("invalid record of the training data: {}", e.what()));
  }
  const auto in_range = [](std::int64_t size, std::int64_t low) { return size >= low && size <= 1 << 20; };
  const auto is_token = [&](const std::string& output) {
    return std::ranges::find(record.vocabulary, output) != record.vocabulary.end();
  };
  require<DataError>(std::ranges::all_of(record.outputs, is_token),
                     "invalid record of the training data: an output is no token of the vocabulary");
  require<DataError>(record.known() && in_range(record.longest.input, 1) &&
                         in_range(record.longest.target, 1) && in_range(record.length, 1) &&
                         in_range(record.source_length, 0),
                     "invalid record of the training data: {} tokens, inputs of up to {}",
                     record.vocabulary.size(), record.longest.input);
  return record;
}

std::string split_rule_mismatch(const DataRecord& record) {
  if (record.split_rule.empty() || record.split_rule == kSplitRule) return "";
  return fmt::format(
      "its splits were made by the {}, and this version makes them by the {}, so that its training lines would be in other splits; train it again",
      printable(record.split_rule), kSplitRule);
}

void follow_moved_files(TaskConfig& config, const fs::path& file,
                        const std::function<bool(const std::string& key)>& is_typed) {
  std::error_code ignored;
  const fs::path folder = file.parent_path(),
                 run = folder.filename() == "checkpoints" ? folder / ".." : folder;
  if (!fs::exists(run / kDataRecord, ignored)) return;
  DataRecord record;
  try {
    record = parse_record(read_file(run / kDataRecord), run);
  } catch (const Error&) {
    return;  // not a record of a run: the files are missing
  }
  for (std::string* path : data_paths(config))
    for (const DataFile& before : record.files)
      if (!before.moved.empty() && *path == before.path &&
          !(is_typed(before.key) && fs::exists(*path, ignored)))
        *path = before.moved;
}

std::vector<std::string> changed_files(const DataRecord& trained, const std::vector<DataFile>& now) {
  std::vector<std::string> lines;
  for (const DataFile& before : trained.files) {
    const DataFile* file = find_key(now, before.key);
    const bool same_place = file != nullptr && (file->path == before.path || file->path == before.moved);
    if (!same_place || file->hash == before.hash || file->hash.empty()) continue;
    lines.push_back(fmt::format("{} has changed since training: {} then, {} now", before.path,
                                state_text(&before), state_text(file)));
  }
  return lines;
}

std::vector<std::string> differing_files(const std::vector<DataFile>& before,
                                         const std::vector<DataFile>& now) {
  std::set<std::string> keys;
  for (const auto* files : {&before, &now})
    for (const DataFile& file : *files) keys.insert(file.key);
  std::vector<std::string> lines;
  for (const std::string& key : keys) {
    const DataFile *then = find_key(before, key), *file = find_key(now, key);
    if (then != nullptr && file != nullptr && then->hash == file->hash) continue;
    const auto text = [](const DataFile* f) {
      return f == nullptr ? state_text(f) : fmt::format("{}, {}", f->path, state_text(f));
    };
    lines.push_back(fmt::format("task.{}: {} then; {} now", key, text(then), text(file)));
  }
  return lines;
}

std::vector<std::string> differing_records(const DataRecord& a, const DataRecord& b, std::string_view name_a,
                                           std::string_view name_b) {
  std::vector<std::string> lines;
  const auto compare = [&](std::string_view what, const std::string& in_a, const std::string& in_b) {
    if (in_a != in_b)
      lines.push_back(fmt::format("{}: {} in {}, {} in {}", what, in_a, name_a, in_b, name_b));
  };
  const auto vocabulary = [](const DataRecord& r) {
    return fmt::format("{} tokens, hash {}", r.vocabulary.size(), hash_digits(json_text(Json(r.vocabulary))));
  };
  compare("vocabulary", vocabulary(a), vocabulary(b));
  compare("longest input", std::to_string(a.longest.input), std::to_string(b.longest.input));
  compare("longest target", std::to_string(a.longest.target), std::to_string(b.longest.target));
  compare("length", std::to_string(a.length), std::to_string(b.length));
  compare("source_length", std::to_string(a.source_length), std::to_string(b.source_length));
  std::set<std::string> keys;
  for (const auto* files : {&a.files, &b.files})
    for (const DataFile& one : *files) keys.insert(one.key);
  for (const std::string& key : keys)
    compare("task." + key, state_text(find_key(a.files, key)), state_text(find_key(b.files, key)));
  return lines;
}

}  // namespace thimble
