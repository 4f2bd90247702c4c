#include "train/files/lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace {

// Returns the error of another process that requests the lock, "" when it gets it.
std::string other_process(const std::filesystem::path& directory) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string heard;
    try {
      const DirectoryLock lock(directory);
    } catch (const FileError& e) {
      heard = e.what();
    }
    const bool written = ::write(ends[1], heard.data(), heard.size()) == std::ssize(heard);
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string heard(4096, '\0');
  heard.resize(static_cast<std::size_t>(::read(ends[0], heard.data(), heard.size())));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  return heard;
}

}  // namespace

TEST_CASE("a second process does not get the lock and hears who has it", "[files]") {
  const TemporaryDirectory directory;
  {
    const DirectoryLock lock(directory.path());
    const std::string heard = other_process(directory.path());
    CHECK_THAT(heard, StartsWith(directory.path().string() + ": in use by process " +
                                 std::to_string(::getpid()) + " on "));
    CHECK_THAT(heard, EndsWith("; wait for it, or choose another directory"));
  }
  CHECK(directory.files() == 0);
  CHECK(other_process(directory.path()).empty());
}

TEST_CASE("what a killed holder leaves behind does not lock anybody out", "[files]") {
  const TemporaryDirectory directory;
  write_file(directory / DirectoryLock::kFile, "process 1 on another planet");
  CHECK_NOTHROW(DirectoryLock(directory.path()));
}

TEST_CASE("a directory that is not there cannot be locked", "[files]") {
  const TemporaryDirectory directory;
  CHECK_THROWS_AS(DirectoryLock(directory / "none"), FileError);
}

TEST_CASE("whether a directory is locked", "[files]") {
  const TemporaryDirectory directory;
  CHECK_FALSE(DirectoryLock::is_held(directory / ""));
  {
    const DirectoryLock lock(directory / "");
    CHECK(DirectoryLock::is_held(directory / ""));
  }
  write_file(directory / DirectoryLock::kFile, "left by a process that was killed");
  CHECK_FALSE(DirectoryLock::is_held(directory / ""));
}
