// Files, read as a whole and written atomically.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

namespace thimble {

// Returns what an errno means, with the remedy where it is a limit of the process.
std::string system_message(int error);

// Opens a regular file with the flags of open(2) and returns its descriptor. Does not wait for the other end of
// a pipe, and writes neither through symbolic links nor to files with several names. Throws FileError, naming
// the path and the reason.
int open_regular(const std::filesystem::path& path, int flags);

// A regular file, open for reading. All functions throw FileError.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::uint64_t size() const { return size_; }  // when it was opened
  bool has_changed() const;                     // returns whether it was written to since
  // Returns up to that many bytes from `offset` on, fewer at the end of the file.
  std::string read(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t size_ = 0;
  std::int64_t written_ = 0;  // when, in nanoseconds
};

// Returns the content. Throws FileError, naming the path and the reason, when the file cannot be read, is not
// a regular file, or has more than `max_bytes`.
std::string read_file(const std::filesystem::path& path,
                      std::uintmax_t max_bytes = std::numeric_limits<std::uintmax_t>::max());

// Writes the file atomically: to a temporary file beside `path`, which is flushed to the disk and renamed, so
// that `path` holds the old content or the new one even if the machine stops. A file that is replaced keeps
// its mode, and its owner where the system allows it. Throws FileError, also for a symbolic link and for a
// file that is read-only.
void write_file(const std::filesystem::path& path, std::string_view content);

// Returns whether write_output() writes to what stands at the path instead of replacing it: a pipe, a character
// device such as a terminal or /dev/null, or an open descriptor (/dev/stderr, /dev/fd/N).
bool is_stream(const std::filesystem::path& path);

// Returns whether the path is another name of what standard output writes to, such as /dev/stdout.
bool is_standard_output(const std::filesystem::path& path);

// Writes a file that the user named: as it is to a stream, elsewhere as write_file() does, following symbolic
// links. Waits until a named pipe has a reader; one whose reader is gone ends the process, see
// end_if_broken_pipe().
void write_output(const std::filesystem::path& path, std::string_view content);

// Ends the process by SIGPIPE, even if that is ignored, if the error is EPIPE: the reader of a pipe is gone.
void end_if_broken_pipe(int error);

// Returns where the symbolic links at the path lead; the path itself where there is none.
std::filesystem::path followed(const std::filesystem::path& path);

// Throws FileError if write_output() could not write there now. Changes nothing, and opens no stream.
void require_writable(const std::filesystem::path& path);

// A file that is written in pieces and takes its place atomically with commit(), as in write_file(). Without
// commit() nothing remains of it. Replaces regular files only. All functions throw FileError.
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
  int descriptor_ = -1;
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
  // Opens the file, makes it if it does not exist, and cuts it to `size` bytes. Throws when it is shorter. A file
  // with several names is copied first, so that the others keep what they have.
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
