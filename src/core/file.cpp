#include "thimble/core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "thimble/core/error.h"

namespace thimble {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* what, int error) {
  throw FileError(fmt::format("{}: {}: {}", path.string(), what, std::strerror(error)));
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags) : value_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  bool open() const { return value_ >= 0; }
  int value() const { return value_; }

 private:
  int value_;
};

// Writes the content and returns 0 or the number of the error.
int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(descriptor, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace

std::string read_file(const fs::path& path, std::uintmax_t max_bytes) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK);  // does not wait for the writer of a pipe
  struct stat status {};
  if (!file.open() || ::fstat(file.value(), &status) != 0) fail(path, "cannot be read", errno);
  require<FileError>(S_ISREG(status.st_mode), "{}: cannot be read: {}", path.string(),
                     S_ISDIR(status.st_mode) ? "Is a directory" : "Is not a regular file");
  const auto check_size = [&](std::uintmax_t size) {
    require<FileError>(size <= max_bytes, "{}: {} bytes; {} is the most", path.string(), size, max_bytes);
  };
  check_size(static_cast<std::uintmax_t>(status.st_size));
  std::string content;
  content.reserve(static_cast<std::size_t>(status.st_size));
  char buffer[1 << 16];
  for (;;) {
    check_size(content.size());
    const ssize_t n = ::read(file.value(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "cannot be read", errno);
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
  }
}

void write_file(const fs::path& path, std::string_view content) {
  NewFile file(path);
  file.append(content);
  file.commit();
}

void require_writable(const fs::path& path) { const NewFile probe(path); }

NewFile::NewFile(const fs::path& path) : path_(path) {
  std::error_code unknown;
  const fs::file_status there = fs::status(path, unknown);
  require<FileError>(!fs::exists(there) || fs::is_regular_file(there), "{}: cannot be written: {}",
                     path.string(), fs::is_directory(there) ? "Is a directory" : "Is not a regular file");
  if (!path.has_filename()) fail(path_, "cannot be written", ENOENT);
  // Another machine may have a process of the same number.
  for (int n = 0; n == 0 || (descriptor_ < 0 && errno == EEXIST); ++n) {
    aside_ = path.string() + fmt::format(".{}-{}.tmp", ::getpid(), n);
    descriptor_ = ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  }
  if (descriptor_ < 0) fail(path_, "cannot be written", errno);
}

NewFile::~NewFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(aside_.c_str());
}

void NewFile::append(std::string_view content) {
  if (const int error = write_all(descriptor_, content); error != 0) fail(path_, "cannot be written", error);
}

void NewFile::commit() {
  if (::fsync(descriptor_) != 0 || ::rename(aside_.c_str(), path_.c_str()) != 0)
    fail(path_, "cannot be written", errno);
  ::close(descriptor_);
  descriptor_ = -1;
  const Descriptor directory(path_.has_parent_path() ? path_.parent_path() : fs::path("."),
                             O_RDONLY | O_DIRECTORY);
  // Accepts a directory that may be written but not read, and a file system that flushes no directories.
  const bool flushed =
      directory.open() ? ::fsync(directory.value()) == 0 || errno == EINVAL : errno == EACCES;
  if (!flushed) fail(path_, "cannot be flushed to the disk", errno);
}

NewDirectory::NewDirectory(const fs::path& path) : path_(path) {
  std::error_code error;
  made_ = fs::create_directory(path, error);
  if (!error && !fs::is_directory(path)) error = std::make_error_code(std::errc::not_a_directory);
  require<FileError>(!error, "{}: cannot be made: {}", path.string(), error.message());
}

NewDirectory::~NewDirectory() {
  std::error_code not_empty;
  if (made_) fs::remove(path_, not_empty);
}

AppendFile::AppendFile(const fs::path& path, std::uint64_t size) : path_(path), size_(size) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(path, "cannot be written", errno);
  const off_t there = ::lseek(descriptor_, 0, SEEK_END);
  int error = there < 0 ? errno : 0;
  const bool enough = there >= static_cast<off_t>(size);
  if (error == 0 && enough && ::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) error = errno;
  if (error == 0 && enough) return;
  ::close(descriptor_);
  if (error != 0) fail(path, "cannot be written", error);
  throw FileError(fmt::format("{}: has {} bytes, {} were written", path.string(), there, size));
}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::append(std::string_view text) {
  if (const int error = write_all(descriptor_, text); error != 0) {
    [[maybe_unused]] const int cut = ::ftruncate(descriptor_, static_cast<off_t>(size_));
    fail(path_, "cannot be written", error);
  }
  size_ += text.size();
}

void AppendFile::sync() {
  if (::fdatasync(descriptor_) != 0) fail(path_, "cannot be written", errno);
}

}  // namespace thimble
