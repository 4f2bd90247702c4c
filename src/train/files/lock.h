// A lock that lets one process at a time write to a directory.
#pragma once

#include <filesystem>
#include <string>

namespace thimble {

// Returns "process 123 on host".
std::string process_name();

// Returns whether the path still leads to that open file.
bool is_same_file(int descriptor, const std::filesystem::path& path);

// A lock on a directory, held for the lifetime of the object; the system releases it however the process ends
// (flock on a file `.lock`, which names the holder and which the destructor removes).
class DirectoryLock {
 public:
  // Throws FileError, naming the holder, when another process holds the lock, and when the file cannot be
  // made.
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  // Returns whether a process holds the lock of the directory.
  static bool is_held(const std::filesystem::path& directory);

  static constexpr const char* kFile = ".lock";

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace thimble
