// Files, read as a whole and written atomically.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

namespace thimble {

// Returns the content. Throws FileError, naming the path and the reason, when the file cannot be read, is not
// a regular file, or has more than `max_bytes`.
std::string read_file(const std::filesystem::path& path,
                      std::uintmax_t max_bytes = std::numeric_limits<std::uintmax_t>::max());

// Writes the file atomically: to a temporary file beside `path`, which is flushed to the disk and renamed, so
// that `path` holds the old content or the new one even if the machine stops. Throws FileError.
void write_file(const std::filesystem::path& path, std::string_view content);

// Throws FileError if write_file() could not write there now. Changes nothing.
void require_writable(const std::filesystem::path& path);

// A file that is written in pieces and takes its place atomically with commit(), as in write_file(). Without
// commit() nothing remains of it. Replaces nothing but regular files. All functions throw FileError.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void append(std::string_view content);
  void commit();

 private:
  std::filesystem::path path_, aside_;
  int descriptor_;
};

// A directory, made if it does not exist. The destructor removes it unless keep() was called, it existed
// before, or it is not empty. The constructor throws FileError.
class NewDirectory {
 public:
  explicit NewDirectory(const std::filesystem::path& path);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  void keep() { made_ = false; }

 private:
  std::filesystem::path path_;
  bool made_;
};

// A file that grows by whole pieces: one that cannot be written in full is cut off again. All functions throw
// FileError.
class AppendFile {
 public:
  // Opens the file, makes it if it does not exist, and cuts it to `size` bytes. Throws when it is shorter.
  AppendFile(const std::filesystem::path& path, std::uint64_t size);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void append(std::string_view text);
  void sync();  // returns when everything is on the disk
  std::uint64_t size() const { return size_; }

 private:
  std::filesystem::path path_;
  std::uint64_t size_;
  int descriptor_;
};

}  // namespace thimble
