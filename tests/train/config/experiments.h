// The files in configs/ that are configs.
#pragma once
#include "source_directory.h"

#include <filesystem>
#include <string>
#include <vector>

inline std::vector<std::string> experiments() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_directory() + "/configs"))
    if (entry.path().extension() == ".yaml" && entry.path().parent_path().filename() != "sweeps" &&
        entry.path().parent_path().filename() != "reproduce")
      files.push_back(entry.path());
  return files;
}
