#include "thimble/train/file.h"
#include "thimble/engine/error.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include "catch.h"
#include "train/files/lock.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace fs = std::filesystem;

namespace {

std::string error_of(auto&& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// Limits files of this process to `bytes` during its lifetime, as a full disk does.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("a file comes back as it was written, whatever its bytes", "[files]") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file";
  std::string every_byte;
  for (int i = 0; i < 300000; ++i) every_byte.push_back(static_cast<char>(i % 256));
  for (const std::string& content : {std::string(), std::string("\0a\n\0", 4), every_byte}) {
    write_file(path, content);
    CHECK(read_file(path) == content);
  }
  CHECK(directory.files() == 1);
}

TEST_CASE("writing replaces the old content, longer or shorter", "[files]") {
  const TemporaryDirectory directory;
  write_file(directory / "file", "something long");
  write_file(directory / "file", "short");
  CHECK(read_file(directory / "file") == "short");
  write_file(directory / "file", "something long again");
  CHECK(read_file(directory / "file") == "something long again");
  CHECK(directory.files() == 1);
}

TEST_CASE("a file without a directory in its name is written here", "[files]") {
  const TemporaryDirectory directory;
  const fs::path here = fs::current_path();
  fs::current_path(directory.path());
  write_file("file", "text");
  fs::current_path(here);
  CHECK(read_file(directory / "file") == "text");
}

TEST_CASE("a reader sees the old content or the new, nothing in between", "[files]") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file";
  write_file(path, std::string(100000, 'a'));
  std::atomic<bool> stop = false;
  std::atomic<int> mixed = 0, reads = 0;
  std::thread reader([&] {
    while (!stop) {
      const std::string content = read_file(path);
      if (content.size() != 100000 || content.find_first_not_of(content[0]) != std::string::npos) ++mixed;
      ++reads;
    }
  });
  for (int i = 0; i < 20 || reads < 5; ++i) write_file(path, std::string(100000, i % 2 == 0 ? 'b' : 'a'));
  stop = true;
  reader.join();
  CHECK(mixed == 0);
}

TEST_CASE("a write that fails half-way leaves the old content and no other file", "[files]") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file";
  write_file(path, "the old content");
  std::string error;
  {
    const FileSizeLimit limit(4096);
    error = error_of([&] { write_file(path, std::string(100000, 'x')); });
  }
  CHECK(error == path.string() + ": cannot be written: File too large");
  CHECK(read_file(path) == "the old content");
  CHECK(directory.files() == 1);
}

TEST_CASE("a file that cannot be written is named, with the reason", "[files]") {
  const TemporaryDirectory directory;
  const fs::path nowhere = directory / "none" / "file";
  CHECK(error_of([&] { write_file(nowhere, "x"); }) ==
        nowhere.string() + ": cannot be written: No such file or directory");
  const fs::path taken = directory / "directory";
  fs::create_directory(taken);
  std::ofstream(taken / "inside") << "x";
  CHECK_THAT(error_of([&] { write_file(taken, "x"); }),
             ContainsSubstring(taken.string() + ": cannot be written: "));
  CHECK(fs::is_directory(taken));
  CHECK(directory.files() == 1);
}

TEST_CASE("what can be written is known beforehand, and nothing is left of the question", "[files]") {
  const TemporaryDirectory directory;
  write_file(directory / "file", "content");
  CHECK_NOTHROW(require_writable(directory / "file"));
  CHECK_NOTHROW(require_writable(directory / "new"));
  CHECK(read_file(directory / "file") == "content");
  for (const fs::path& path : {directory / "none" / "file", directory / "file" / "below", directory.path(),
                               directory / "none" / "", fs::path()})
    CHECK_THAT(error_of([&] { require_writable(path); }),
               ContainsSubstring(path.string() + ": cannot be written: "));
  CHECK(directory.files() == 1);
}

TEST_CASE("only regular files are replaced", "[files]") {
  const TemporaryDirectory directory;
  const fs::path pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(error_of([&] { write_file(pipe, "x"); }) ==
        pipe.string() + ": cannot be written: Is not a regular file");
  CHECK(fs::is_fifo(pipe));
  CHECK(directory.files() == 1);
}

TEST_CASE("a file that is replaced keeps its mode, and one that is read-only stays", "[files]") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file";
  for (const auto mode : {0600, 0640, 0644, 0755}) {
    write_file(path, "old");
    fs::permissions(path, static_cast<fs::perms>(mode));
    write_file(path, "new");
    CHECK(static_cast<int>(fs::status(path).permissions()) == mode);
  }
  fs::permissions(path, static_cast<fs::perms>(0444));
  if (::geteuid() == 0) return;
  CHECK(error_of([&] { write_file(path, "newer"); }) ==
        path.string() + ": cannot be written: Permission denied");
  CHECK(read_file(path) == "new");
  CHECK(directory.files() == 1);
}

TEST_CASE("files of thimble are not written through links, outputs of users are", "[files]") {
  const TemporaryDirectory directory;
  const fs::path target = directory / "target", link = directory / "link", chain = directory / "chain";
  write_file(target, "mine");
  fs::create_symlink("target", link);
  fs::create_symlink(link, chain);
  const std::string refusal = ": cannot be written: it is a symbolic link; put a file in its place";
  CHECK(error_of([&] { write_file(link, "x"); }) == link.string() + refusal);
  CHECK(error_of([&] { AppendFile(link, 0); }) == link.string() + refusal);
  CHECK(read_file(target) == "mine");
  CHECK(followed(chain) == directory / "target");
  CHECK_NOTHROW(require_writable(directory / "none"));
  fs::remove(target);
  CHECK_NOTHROW(require_writable(chain));
  write_output(chain, "yours");
  CHECK(read_file(target) == "yours");
  CHECK(fs::is_symlink(chain));
  fs::create_symlink("circle", directory / "circle");
  CHECK_THAT(error_of([&] { followed(directory / "circle"); }),
             EndsWith("Too many levels of symbolic links"));
}

TEST_CASE("an output to a pipe or a device is written to it", "[files]") {
  const TemporaryDirectory directory;
  const fs::path pipe = directory / "pipe", file = directory / "file";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_NOTHROW(require_writable(pipe));
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  std::string got(100, '\0');
  for (int i = 0; i < 2; ++i) {
    CHECK(is_stream(pipe));
    write_output(pipe, "result");
    got.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(reader, got.data(), got.size()))));
    CHECK(got == "result");
  }
  ::close(reader);
  CHECK(fs::is_fifo(pipe));
  CHECK_NOTHROW(write_output("/dev/null", "result"));
  CHECK(error_of([&] { write_output("/dev/full", "x"); }) ==
        "/dev/full: cannot be written: No space left on device");

  write_file(file, "before ");
  CHECK_FALSE(is_stream(file));
  CHECK_FALSE(is_stream(directory.path()));
  CHECK(directory.files() == 2);
  CHECK(is_standard_output("/dev/stdout"));
  CHECK_FALSE(is_standard_output(file));
}

TEST_CASE("opening never waits for the other end of a pipe", "[files]") {
  const TemporaryDirectory directory;
  const fs::path pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THAT(error_of([&] { read_file(pipe); }), EndsWith("cannot be read: Is not a regular file"));
  CHECK_THAT(error_of([&] { AppendFile(pipe, 0); }), EndsWith("cannot be written: Is not a regular file"));
  fs::rename(pipe, directory / DirectoryLock::kFile);
  CHECK_THAT(error_of([&] { DirectoryLock lock(directory.path()); }), EndsWith("Is not a regular file"));
  CHECK_FALSE(DirectoryLock::is_held(directory.path()));
}

TEST_CASE("a directory that is made for files goes if it stays empty and is not kept", "[files]") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "made";
  { const NewDirectory unused(path); }
  CHECK(!fs::exists(path));
  { NewDirectory(path).keep(); }
  CHECK(fs::is_directory(path));
  { const NewDirectory there(path); }
  CHECK(fs::is_directory(path));
  write_file(directory / "file", "content");
  CHECK_THROWS_AS(NewDirectory(directory / "file"), FileError);
  CHECK_THROWS_AS(NewDirectory(directory / "none" / "made"), FileError);
  CHECK(read_file(directory / "file") == "content");
}

TEST_CASE("without permission nothing is written, and the old content stays", "[files]") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file";
  write_file(path, "the old content");
  // Root may write anywhere, so the test becomes a user without files for a moment.
  const bool root = ::geteuid() == 0;
  fs::permissions(directory.path(), root ? fs::perms(0755) : fs::perms(0555));
  if (root) REQUIRE(::seteuid(65534) == 0);
  const std::string error = error_of([&] { write_file(path, "x"); });
  if (root) REQUIRE(::seteuid(0) == 0);
  fs::permissions(directory.path(), fs::perms(0755));
  CHECK(error == path.string() + ": cannot be written: Permission denied");
  CHECK(read_file(path) == "the old content");
  CHECK(directory.files() == 1);
}

TEST_CASE("a file below another file cannot be written", "[files]") {
  const TemporaryDirectory directory;
  write_file(directory / "file", "content");
  CHECK(error_of([&] { write_file(directory / "file" / "below", "x"); }) ==
        (directory / "file" / "below").string() + ": cannot be written: Not a directory");
  CHECK(read_file(directory / "file") == "content");
  CHECK(directory.files() == 1);
}

TEST_CASE("a file that cannot be read is named, with the reason", "[files]") {
  const TemporaryDirectory directory;
  const fs::path missing = directory / "missing";
  CHECK(error_of([&] { read_file(missing); }) ==
        missing.string() + ": cannot be read: No such file or directory");
  CHECK(error_of([&] { read_file(directory.path()); }) ==
        directory.path().string() + ": cannot be read: Is a directory");
  const fs::path pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(error_of([&] { read_file(pipe); }) == pipe.string() + ": cannot be read: Is not a regular file");
}

TEST_CASE("a file that is larger than allowed is refused", "[files]") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file";
  write_file(path, "12345");
  CHECK(read_file(path, 5) == "12345");
  CHECK(error_of([&] { read_file(path, 4); }) == path.string() + ": 5 bytes; 4 is the most");
  CHECK_THAT(error_of([] { read_file("/proc/self/maps", 9); }),  // whose size is 0 before it is read
             EndsWith(" bytes; 9 is the most"));
}

TEST_CASE("a file written in pieces is there once it is committed, or not at all", "[files]") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file";
  write_file(path, "old");
  {
    NewFile abandoned(path);
    abandoned.append("new");
  }
  CHECK(read_file(path) == "old");
  CHECK(directory.files() == 1);
  {
    NewFile file(path);
    file.append("ne");
    file.append("w");
    CHECK(read_file(path) == "old");
    file.commit();
  }
  CHECK(read_file(path) == "new");
  CHECK(directory.files() == 1);
  CHECK_THROWS_AS(NewFile(directory / "no" / "file"), FileError);
}

TEST_CASE("a disk that is full leaves nothing of a file written in pieces", "[files]") {
  const TemporaryDirectory directory;
  {
    const FileSizeLimit limit(100);
    NewFile file(directory / "file");
    file.append(std::string(90, 'x'));
    CHECK(error_of([&] { file.append(std::string(90, 'x')); }).find("cannot be written") !=
          std::string::npos);
  }
  CHECK(directory.files() == 0);
}
