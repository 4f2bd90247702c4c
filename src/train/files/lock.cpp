#include "train/files/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "thimble/engine/error.h"
#include "thimble/train/file.h"

namespace thimble {

std::string process_name() {
  std::array<char, HOST_NAME_MAX + 1> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", ::getpid(), host.data());
}

bool is_same_file(int descriptor, const std::filesystem::path& path) {
  struct stat opened {
  }, there{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

namespace {

// Removes a lock that nobody holds and that has several names, as a copy of a directory by hard links has.
void remove_copy(const std::filesystem::path& path) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0 || !S_ISREG(there.st_mode) || there.st_nlink < 2) return;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return;
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0 && is_same_file(descriptor, path)) ::unlink(path.c_str());
  ::close(descriptor);
}

}  // namespace

FileLock::FileLock(std::filesystem::path file, const std::string& what) : path_(std::move(file)) {
  constexpr int kAttempts = 100;
  for (int attempt = 0;; ++attempt) {
    remove_copy(path_);
    descriptor_ = open_regular(path_, O_RDWR | O_CREAT);
    is_held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    const int error = is_held_ ? 0 : errno;
    const bool has_none = error == ENOSYS || error == EOPNOTSUPP || error == ENOLCK;
    if (!is_held_ && !has_none) {
      ::close(descriptor_);
      require<FileError>(error == EWOULDBLOCK, "{}: cannot be locked: {}", path_.string(),
                         system_message(error));
      throw FileError(
          fmt::format("{}: in use by {}; wait for it, or choose another directory", what, read_file(path_)));
    }
    // The previous holder may have removed the file after it was opened here.
    if (is_same_file(descriptor_, path_)) break;
    ::close(descriptor_);
    require<FileError>(
        attempt < kAttempts,
        "{}: cannot be locked: the file system shows another file each time it is opened; choose a directory on another file system",
        path_.string());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::string name = process_name();
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, name.data(), name.size(), 0) != std::ssize(name)) {
    // The lock holds without the name of its holder; the next file that is written reports a full disk.
  }
}

FileLock::~FileLock() {
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

std::string FileLock::holder(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return "";
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  std::array<char, 512> name{};
  const ssize_t size = held ? ::pread(descriptor, name.data(), name.size(), 0) : 0;
  ::close(descriptor);
  if (!held) return "";
  return size > 0 ? std::string(name.data(), static_cast<std::size_t>(size)) : "a process";
}

}  // namespace thimble
