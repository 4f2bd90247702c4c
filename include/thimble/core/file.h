// Files, read whole and written whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

namespace thimble {

// Throws FileError, naming the path and the reason, when the file cannot be read, is no regular file, such as
// a pipe that may never end, or has more than `max_bytes`.
std::string read_file(const std::filesystem::path& path,
                      std::uintmax_t max_bytes = std::numeric_limits<std::uintmax_t>::max());

// Writes to a temporary file beside `path`, flushes it to the disk and renames it, so that `path` holds the
// old content or the new one and nothing in between, even if the machine stops. Throws FileError.
void write_file(const std::filesystem::path& path, std::string_view content);

// Throws FileError if write_file cannot write there as things are. Leaves nothing behind, and what is there
// as it is.
void require_writable(const std::filesystem::path& path);

// A file that is written in pieces, aside, and takes its place as write_file does. Nothing is left of it
// without commit(). What is there and no regular file is not replaced. All functions throw FileError.
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

// A directory that is made for files, or one that is there already. Destroyed without keep(), it is removed
// if it was made and is empty. Throws FileError.
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

// A file that grows by whole pieces. All functions throw FileError.
class AppendFile {
 public:
  // Opens it, makes it if need be, and cuts it to `size` bytes. A file that is shorter is an error.
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
