// The record of a model's training data in its run directory (kDataRecord) and its checkpoints (metadata
// "data"), with which the model can be used after its data files have changed, moved or been deleted.
//
//   {"vocabulary": ["a", ...], "longest": {"input": 4, "target": 1}, "length": 4, "source_length": 0,
//    "files": [{"key": "file", "path": "/home/me/a.tsv", "relative": "../a.tsv", "bytes": 9, "hash": "..."}],
//    "split_rule": "hash of the input's text", "step_order": "dealt", "outputs": ["ham", "spam"]}
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/train/json.h"
#include "thimble/train/source.h"

namespace thimble {

inline constexpr const char* kDataRecord = "data.json";

// How the rows of a data file are divided into splits. Records of version 0.2 and earlier do not state it:
// theirs is kIdRule, whose splits depend on the whole vocabulary.
inline constexpr std::string_view kSplitRule = "hash of the input's text", kIdRule = "hash of the token ids";

// The vocabulary, lengths and data files that a model was trained with.
struct DataRecord {
  std::vector<std::string> vocabulary;         // tokens by id, as from vocabulary_of
  ExampleSize longest{};                       // tokens of the longest input and of the longest target
  std::int64_t length = 0, source_length = 0;  // longest sequence and source that the model accepts
  std::string split_rule{};                    // "": the task has no files
  std::vector<DataFile> files{};               // empty: the task has none
  std::vector<std::string> outputs{};          // tokens that are the outputs; empty: those of the vocabulary
  std::string boundary{};                      // token around each document; "": none, or of version 0.3
  std::string step_order{};                    // of batches, see StepOrder; "": as version 0.3 made them

  bool known() const { return !vocabulary.empty(); }  // false: weights made elsewhere
};

// Returns the record of a source. `max_length` is that of the model; 0: what the sequences need. Throws DataError
// as model_sizes does.
DataRecord record_of(const Source&, Layout, std::int64_t max_length, Outputs = Outputs::answers);

// Returns the record as JSON, with paths relative to the run directory unless `run` is empty.
Json to_json(const DataRecord&, const std::filesystem::path& run = {});

// Parses a record. Files with other content at their path, or none, but their own relative to `run` are marked as moved.
// Throws DataError when the text is not a record.
DataRecord parse_record(const std::string& text, const std::filesystem::path& run = {});
DataRecord parse_record(const Json& json, const std::filesystem::path& run = {});

// Returns what to say of a record whose rows are divided by another rule than kSplitRule, with which rows of
// training would be in other splits; "" when it is the same, or there are no files.
std::string split_rule_mismatch(const DataRecord&);

// Replaces paths of data files that moved along with the run that `file` is part of: its config or one of its checkpoints.
// Every command that opens data calls it. Does nothing for a file outside of runs, nor for one that exists and was typed.
void follow_moved_files(TaskConfig&, const std::filesystem::path& file,
                        const std::function<bool(const std::string& key)>& is_typed);

// Returns a line for each file with the same key and path in both whose content differs.
std::vector<std::string> changed_files(const DataRecord& trained, const std::vector<DataFile>& now);

// Returns a line for each key whose files differ in content, whatever their paths.
std::vector<std::string> differing_files(const std::vector<DataFile>& before,
                                         const std::vector<DataFile>& now);

// Returns a line, with the names of the records, for each of vocabulary, lengths and contents of files that
// differ.
std::vector<std::string> differing_records(const DataRecord& a, const DataRecord& b, std::string_view name_a,
                                           std::string_view name_b);

}  // namespace thimble
