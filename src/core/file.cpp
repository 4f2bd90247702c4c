#include "thimble/core/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace thimble {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* what, int error) {
  throw FileError(fmt::format("{}: {}: {}", path.string(), what, std::strerror(error)));
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, mode_t mode = 0)
      : value_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
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

// Returns 0 or the error's number.
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

std::string read_file(const fs::path& path) {
  const Descriptor file(path, O_RDONLY);
  if (!file.open()) fail(path, "cannot be read", errno);
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.value(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "cannot be read", errno);
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
  }
}

void write_file(const fs::path& path, std::string_view content) {
  const fs::path aside = path.string() + fmt::format(".{}.tmp", ::getpid());
  int error = 0;
  {
    const Descriptor file(aside, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (!file.open()) fail(path, "cannot be written", errno);
    error = write_all(file.value(), content);
    if (error == 0 && ::fsync(file.value()) != 0) error = errno;
  }
  if (error == 0 && ::rename(aside.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(aside.c_str());
    fail(path, "cannot be written", error);
  }
  const Descriptor directory(path.has_parent_path() ? path.parent_path() : fs::path("."),
                             O_RDONLY | O_DIRECTORY);
  if (directory.open()) ::fsync(directory.value());
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
  if (const int error = write_all(descriptor_, text); error != 0) fail(path_, "cannot be written", error);
  size_ += text.size();
}

void AppendFile::sync() {
  if (::fdatasync(descriptor_) != 0) fail(path_, "cannot be written", errno);
}

}  // namespace thimble
