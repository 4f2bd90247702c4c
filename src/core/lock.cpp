#include "thimble/core/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "thimble/core/error.h"
#include "thimble/core/file.h"

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

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) : path_(directory / kFile) {
  const std::string name = process_name();
  for (;;) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    require<FileError>(descriptor_ >= 0, "{}: cannot be written: {}", path_.string(), std::strerror(errno));
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(descriptor_);
      require<FileError>(error == EWOULDBLOCK, "{}: cannot be locked: {}", path_.string(),
                         std::strerror(error));
      throw FileError(fmt::format("{}: in use by {}; wait for it, or choose another directory",
                                  directory.string(), read_file(path_)));
    }
    // The previous holder may have removed the file after it was opened here.
    if (is_same_file(descriptor_, path_)) break;
    ::close(descriptor_);
  }
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, name.data(), name.size(), 0) != std::ssize(name)) {
    // The lock holds without the name of its holder; the next file that is written reports a full disk.
  }
}

DirectoryLock::~DirectoryLock() {
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

bool DirectoryLock::is_held(const std::filesystem::path& directory) {
  const int descriptor = ::open((directory / kFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return held;
}

}  // namespace thimble
