// Reads the files of runs.
#pragma once

#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "thimble/train/file.h"
#include "thimble/train/json.h"

inline std::vector<thimble::Json> metrics_of(const std::filesystem::path& run) {
  std::istringstream lines(thimble::read_file(run / "metrics.jsonl"));
  std::vector<thimble::Json> result;
  for (std::string line; std::getline(lines, line);) result.push_back(thimble::parse_json(line));
  return result;
}

// The file without the one field that differs from run to run.
inline std::string timeless_metrics(const std::filesystem::path& run) {
  return std::regex_replace(thimble::read_file(run / "metrics.jsonl"),
                            std::regex(",\"seconds\":[0-9.e+-]+\\}"), "}");
}

// Everything below a directory, with its content.
inline std::map<std::string, std::string> tree(const std::filesystem::path& directory) {
  std::map<std::string, std::string> result;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    result[entry.path().lexically_relative(directory).string()] =
        entry.is_directory() ? "directory" : thimble::read_file(entry.path());
  }
  return result;
}
