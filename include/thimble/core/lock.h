// One writer for a directory.
#pragma once

#include <filesystem>

namespace thimble {

// Held while it lives, and given up by the system if the process ends in any way (flock on a file `.lock`,
// which goes away with it). The file names the holder.
class DirectoryLock {
 public:
  // Throws FileError, naming the holder, when another process has it, and when the file cannot be made.
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  static constexpr const char* kFile = ".lock";

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace thimble
