// A lock that lets one process at a time write to a directory.
#pragma once

#include <filesystem>
#include <string>

namespace thimble {

// Returns "process 123 on host".
std::string process_name();

// Returns whether the path still leads to that open file.
bool is_same_file(int descriptor, const std::filesystem::path& path);

// A lock, held for the lifetime of the object; the system releases it however the process ends (flock on a file, which
// names the holder and which the destructor removes). On a file system without locks nothing is locked.
class FileLock {
 public:
  // Throws FileError, naming `what` is locked and the holder, when another process holds the lock, and when the file
  // cannot be made.
  FileLock(std::filesystem::path file, const std::string& what);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool is_held_here() const { return is_held_; }  // false on a file system without locks

  // Returns the process that holds the lock; "" if none does.
  static std::string holder(const std::filesystem::path& file);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool is_held_ = false;
};

// The lock of a directory, on its file `.lock`.
class DirectoryLock : public FileLock {
 public:
  static constexpr const char* kFile = ".lock";

  explicit DirectoryLock(const std::filesystem::path& directory)
      : FileLock(directory / kFile, directory.string()) {}

  static bool is_held(const std::filesystem::path& directory) { return !holder(directory / kFile).empty(); }
};

}  // namespace thimble
