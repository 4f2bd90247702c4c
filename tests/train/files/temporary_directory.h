// A directory for one test.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "thimble-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::filesystem::filesystem_error(name, std::error_code(errno, std::generic_category()));
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::ptrdiff_t files() const {  // entries of the directory itself
    return std::ranges::distance(std::filesystem::directory_iterator(path_),
                                 std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path path_;
};
