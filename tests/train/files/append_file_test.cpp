#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

TEST_CASE("a file grows by what is appended", "[files]") {
  const TemporaryDirectory directory;
  {
    AppendFile file(directory / "log", 0);
    file.append("one\n");
    CHECK(read_file(directory / "log") == "one\n");  // without waiting for the end
    file.append("two\n");
    file.sync();
    CHECK(file.size() == 8);
  }
  CHECK(read_file(directory / "log") == "one\ntwo\n");
}

TEST_CASE("opening cuts a file, and refuses one that is shorter", "[files]") {
  const TemporaryDirectory directory;
  write_file(directory / "log", "one\ntwo\nthr");
  {
    AppendFile file(directory / "log", 8);
    file.append("3\n");
    CHECK(file.size() == 10);
  }
  CHECK(read_file(directory / "log") == "one\ntwo\n3\n");
  CHECK_THROWS_AS(AppendFile(directory / "log", 11), FileError);
  CHECK_THROWS_WITH(AppendFile(directory / "log", 11), ContainsSubstring("has 10 bytes, 11 were written"));
  CHECK(read_file(directory / "log") == "one\ntwo\n3\n");
  CHECK_THROWS_AS(AppendFile(directory / "none" / "log", 0), FileError);
}

TEST_CASE("a file that cannot grow any more is an error", "[files]") {
  const TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int status = 1;
    try {
      AppendFile file(directory / "log", 0);
      file.append(std::string(90, 'x'));
      file.append(std::string(20, 'y'));
    } catch (const FileError&) {
      status = 0;
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(read_file(directory / "log") == std::string(90, 'x'));  // no part of what did not fit
}

TEST_CASE("a file with several names is copied before it grows", "[files]") {
  const TemporaryDirectory directory;
  const auto path = directory / "file", copy = directory / "copy";
  write_file(path, "mine\nnext\n");
  std::filesystem::create_hard_link(path, copy);
  AppendFile(path, 5).append("more\n");
  CHECK(read_file(path) == "mine\nmore\n");
  CHECK(read_file(copy) == "mine\nnext\n");
  AppendFile(path, 5).append("x\n");  // now it has one name
  CHECK(read_file(path) == "mine\nx\n");
}
