#include "train/files/path.h"

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

TEST_CASE("a path that JSON cannot name is refused", "[files]") {
  CHECK_NOTHROW(require_utf8("runs/großer Löwe"));
  CHECK_THROWS_AS(require_utf8("runs/\xff"), FileError);
  CHECK_THROWS_WITH(require_utf8("runs/\xff/x"), ContainsSubstring("runs/\\x{ff}/x: the path is not UTF-8"));
}

TEST_CASE("what killed processes left is removed, and nothing else", "[files]") {
  const TemporaryDirectory directory;
  for (const char* name : {"a.json.123-0.tmp", "a.json", "tmp", "notes.tmp", "a.json.123.tmp", "a.-0.tmp"})
    write_file(directory / name, "x");
  remove_temporary_files(directory / "");
  CHECK_FALSE(std::filesystem::exists(directory / "a.json.123-0.tmp"));
  for (const char* name : {"a.json", "tmp", "notes.tmp", "a.json.123.tmp", "a.-0.tmp"})
    CHECK(std::filesystem::exists(directory / name));

  for (const char* name : {"new.1-0.tmp", "old.1-12.tmp"}) write_file(directory / name, "x");
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(directory / "old.1-12.tmp", now - std::chrono::hours(2));
  remove_temporary_files(directory / "", std::chrono::hours(1));
  CHECK_FALSE(std::filesystem::exists(directory / "old.1-12.tmp"));
  CHECK(std::filesystem::exists(directory / "new.1-0.tmp"));
}
