#include "thimble/train/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "thimble/engine/error.h"
#include "train/files/text/text.h"

namespace thimble {

namespace fs = std::filesystem;

std::string system_message(int error) {
  const std::string text = std::strerror(error);
  if (error == ESTALE) return text + "; another machine has replaced it: try again";
  return text + (error == EMFILE ? "; raise the limit (ulimit -n)" : "");
}

namespace {

[[noreturn]] void fail(const fs::path& path, const char* what, int error) {
  throw FileError(fmt::format("{}: {}: {}", path.string(), what, system_message(error)));
}

std::int64_t time_of(const struct stat& status) {
  return status.st_mtim.tv_sec * INT64_C(1'000'000'000) + status.st_mtim.tv_nsec;
}

// Copies the start of a file that has several names, under this one.
fs::path separate(const fs::path& path, std::uint64_t size) {
  std::error_code none;
  if (!fs::is_regular_file(fs::symlink_status(path, none)) || fs::hard_link_count(path, none) < 2)
    return path;
  NewFile copy(path);
  const InputFile file(path);
  constexpr std::uint64_t kPiece = 1 << 20;
  for (std::uint64_t at = 0; at < std::min(size, file.size()); at += kPiece)
    copy.append(file.read(at, std::min(kPiece, size - at)));
  copy.commit();
  return path;
}

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

// Returns the descriptor that a path names and that is open for writing, or -1: /dev/stderr, /dev/fd/N.
int named_descriptor(const fs::path& path) {
  const fs::path folder = path.parent_path();
  const bool has_number = folder == "/dev/fd" || folder == "/proc/self/fd";
  const auto number = has_number ? parse_number<std::int64_t>(path.filename().string())
                                 : std::optional<std::int64_t>(path == "/dev/stderr" ? STDERR_FILENO : -1);
  const int descriptor = static_cast<int>(number.value_or(-1)), flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY ? descriptor : -1;
}

void write_stream(const fs::path& path, std::string_view content) {
  const int named = named_descriptor(path);
  const int descriptor = named >= 0 ? named : ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  const int error = descriptor < 0 ? errno : write_all(descriptor, content);
  if (named < 0 && descriptor >= 0) ::close(descriptor);
  end_if_broken_pipe(error);
  if (error != 0) fail(path, "cannot be written", error);
}

}  // namespace

int open_regular(const fs::path& path, int flags) {
  const bool reads = (flags & O_ACCMODE) == O_RDONLY;
  const char* what = reads ? "cannot be read" : "cannot be written";
  const int descriptor =
      ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | (reads ? 0 : O_NOFOLLOW), 0644);
  const int error = errno;
  struct stat status {};
  if (descriptor < 0) {
    if (::lstat(path.c_str(), &status) == 0) {
      require<FileError>(reads || !S_ISLNK(status.st_mode),
                         "{}: {}: it is a symbolic link; put a file in its place", path.string(), what);
      require<FileError>(reads || S_ISREG(status.st_mode), "{}: {}: {}", path.string(), what,
                         S_ISDIR(status.st_mode) ? "Is a directory" : "Is not a regular file");
    }
    fail(path, what, error);
  }
  const bool known = ::fstat(descriptor, &status) == 0, shared = !reads && status.st_nlink > 1;
  if (known && S_ISREG(status.st_mode) && !shared) return descriptor;
  const int reason = errno;
  ::close(descriptor);
  if (!known) fail(path, what, reason);
  require<FileError>(!shared || !S_ISREG(status.st_mode),
                     "{}: {}: it has {} names (hard links), all of which would change; replace it by a copy",
                     path.string(), what, status.st_nlink);
  throw FileError(fmt::format("{}: {}: {}", path.string(), what,
                              S_ISDIR(status.st_mode) ? "Is a directory" : "Is not a regular file"));
}

InputFile::InputFile(const fs::path& path) : path_(path), descriptor_(open_regular(path, O_RDONLY)) {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    const int error = errno;
    ::close(descriptor_);
    fail(path, "cannot be read", error);
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  written_ = time_of(status);
}

bool InputFile::has_changed() const {
  struct stat now {};
  return ::fstat(descriptor_, &now) != 0 || static_cast<std::uint64_t>(now.st_size) != size_ ||
         time_of(now) != written_;
}

InputFile::~InputFile() { ::close(descriptor_); }

std::string InputFile::read(std::uint64_t offset, std::uint64_t bytes) const {
  std::string content;
  content.reserve(std::min(bytes, size_ - std::min(offset, size_)));
  char buffer[1 << 16];
  while (content.size() < bytes) {
    const std::size_t wanted = std::min<std::uint64_t>(sizeof buffer, bytes - content.size());
    const ssize_t n = ::pread(descriptor_, buffer, wanted, static_cast<off_t>(offset + content.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, "cannot be read", errno);
    if (n == 0) break;
    content.append(buffer, static_cast<std::size_t>(n));
  }
  return content;
}

std::string read_file(const fs::path& path, std::uintmax_t max_bytes) {
  const InputFile file(path);
  const auto check_size = [&](std::uintmax_t size) {
    require<FileError>(size <= max_bytes, "{}: {} bytes; {} is the most", path.string(), size, max_bytes);
  };
  check_size(file.size());
  std::string content = file.read(0, max_bytes < UINT64_MAX ? max_bytes + 1 : max_bytes);
  check_size(content.size());
  return content;
}

void end_if_broken_pipe(int error) {
  if (error != EPIPE) return;
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
}

bool is_stream(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode) || named_descriptor(path) >= 0);
}

bool is_standard_output(const fs::path& path) {
  struct stat there {};
  struct stat output {};
  return ::stat(path.c_str(), &there) == 0 && ::fstat(STDOUT_FILENO, &output) == 0 &&
         there.st_dev == output.st_dev && there.st_ino == output.st_ino;
}

fs::path followed(const fs::path& path) {
  constexpr int kMaxLinks = 40;  // as the system
  fs::path target = path;
  std::error_code no_link;
  for (int i = 0; i < kMaxLinks; ++i) {
    const fs::path next = fs::read_symlink(target, no_link);
    if (no_link) return target;
    target = target.parent_path() / next;
  }
  fail(path, "cannot be written", ELOOP);
}

void write_file(const fs::path& path, std::string_view content) {
  NewFile file(path);
  file.append(content);
  file.commit();
}

void require_writable(const fs::path& path) {
  std::error_code none;
  if (fs::is_directory(path, none)) fail(path, "cannot be written", EISDIR);
  if (!is_stream(path)) {
    const NewFile probe(followed(path));
    return;
  }
  if (named_descriptor(path) < 0 && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
    fail(path, "cannot be written", errno);
}

void write_output(const fs::path& path, std::string_view content) {
  if (is_stream(path)) return write_stream(path, content);
  write_file(followed(path), content);
}

NewFile::NewFile(const fs::path& path) : path_(path) {
  struct stat there {};
  const bool replaces = ::lstat(path.c_str(), &there) == 0;
  require<FileError>(!replaces || S_ISREG(there.st_mode), "{}: cannot be written: {}", path.string(),
                     S_ISDIR(there.st_mode)   ? "Is a directory"
                     : S_ISLNK(there.st_mode) ? "it is a symbolic link; put a file in its place"
                                              : "Is not a regular file");
  if (!path.has_filename()) fail(path_, "cannot be written", ENOENT);
  if (replaces && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
    fail(path_, "cannot be written", errno);
  // Another machine may have a process of the same number.
  for (int n = 0; n == 0 || (descriptor_ < 0 && errno == EEXIST); ++n) {
    aside_ = path.string() + fmt::format(".{}-{}.tmp", ::getpid(), n);
    descriptor_ = ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? 0600 : 0644);
  }
  if (descriptor_ < 0) fail(path_, "cannot be written", errno);
  if (!replaces) return;
  // Only root may give a file away; for others, the new file is their own.
  [[maybe_unused]] const int kept = ::fchown(descriptor_, there.st_uid, there.st_gid);
  if (::fchmod(descriptor_, there.st_mode & 07777) == 0) return;
  const int error = errno;
  ::close(descriptor_);
  ::unlink(aside_.c_str());
  fail(path_, "cannot be written", error);
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
  const fs::path folder = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Accepts a directory that may be written but not read, and a file system that flushes no directories.
  const bool flushed =
      directory >= 0 ? ::fsync(directory) == 0 || errno == EINVAL || errno == ENOTSUP : errno == EACCES;
  const int error = errno;
  if (directory >= 0) ::close(directory);
  if (!flushed) fail(path_, "cannot be flushed to the disk", error);
}

NewDirectory::NewDirectory(const fs::path& path) : path_(path) {
  std::error_code error;
  made_ = fs::create_directory(path, error);
  if (!error && !fs::is_directory(path)) error = std::make_error_code(std::errc::not_a_directory);
  require<FileError>(!error, "{}: cannot be made: {}", path.string(), system_message(error.value()));
}

NewDirectory::~NewDirectory() {
  std::error_code not_empty;
  if (made_) fs::remove(path_, not_empty);
}

AppendFile::AppendFile(const fs::path& path, std::uint64_t size)
    : path_(separate(path, size)),
      size_(size),
      descriptor_(open_regular(path, O_WRONLY | O_CREAT | O_APPEND)) {
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
