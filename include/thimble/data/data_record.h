// What a model was trained on, as its run directory (data.json) and its checkpoints (metadata "data") keep
// it: enough to read the model after its data files have changed, moved or gone.
//
//   {"vocabulary": ["a", ...], "longest": {"input": 4, "target": 1}, "length": 4, "source_length": 0,
//    "files": [{"key": "file", "path": "/home/me/a.tsv", "relative": "../a.tsv", "bytes": 9, "hash": "..."}]}
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/data/dataset.h"
#include "thimble/data/task.h"

namespace thimble {

// A data file as it was read.
struct DataFile {
  std::string key;   // of TaskConfig: "file", "validation_file", "test_file" or "vocabulary_file"
  std::string path;  // absolute
  std::uint64_t bytes = 0;
  std::string hash{};      // 16 hex digits, XXH3-64 of the bytes; "": it could not be read
  std::string relative{};  // the path from the run directory; "": there is none
  std::string moved{};     // where it is now, when it is not at its path but there; "": it has not moved
};

struct DataRecord {
  std::vector<std::string> vocabulary;         // token names by id, as token_names gives them
  ExampleSize longest{};                       // tokens of the longest input and of the longest target
  std::int64_t length = 0, source_length = 0;  // the longest sequence and source the model takes
  std::vector<DataFile> files{};               // empty: the task has none

  bool known() const { return !vocabulary.empty(); }  // false: weights made elsewhere
};

// `max_length` is the model's; 0: what the task needs. Throws DataError as model_length and token_names do.
DataRecord record_of(const TaskConfig&, Layout, std::int64_t max_length);

// `run` is the directory that relative paths start at; empty: they are left out.
Json to_json(const DataRecord&, const std::filesystem::path& run = {});

// Throws DataError when the text is not a record. A file that is not at its path, but at the one relative to
// `run`, has moved there.
DataRecord parse_record(const std::string& text, const std::filesystem::path& run = {});

// A line for each file that both have by the same key and path and whose content differs.
std::vector<std::string> changed_files(const DataRecord& trained, const std::vector<DataFile>& now);

// A line for each file of either that has not the same content in the other, whatever its path.
std::vector<std::string> differing_files(const std::vector<DataFile>& before,
                                         const std::vector<DataFile>& now);

}  // namespace thimble
