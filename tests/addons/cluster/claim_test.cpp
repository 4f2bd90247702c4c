// Claims: one holder, takeover from processes that have ended or fallen silent, by one of many.
#include "addons/cluster/claim.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/lock.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace fs = std::filesystem;

namespace {

constexpr double kMinute = 60;
const std::string kElsewhere = "process 1 on elsewhere\n0-0-0-0\n1\n";

void age(const fs::path& file, std::chrono::seconds by) {
  fs::last_write_time(file, fs::last_write_time(file) - by);
}

// Runs f in a child process, which then ends without destructors, and returns its exit status.
template <class F>
int in_child(const F& f) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(f());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("a claim has one holder until it is released", "[cluster]") {
  const TemporaryDirectory directory;
  const fs::path name = directory / "run";
  CHECK(claim_holder(name, kMinute).empty());
  auto claim = Claim::take(name, kMinute);
  REQUIRE(claim != nullptr);
  CHECK(claim->renew());
  CHECK(claim_holder(name, kMinute) == process_name());
  CHECK(Claim::take(name, kMinute) == nullptr);
  CHECK(Claim::take(directory / "run2", kMinute) != nullptr);
  claim.reset();
  CHECK(fs::is_empty(directory / ""));
  CHECK(Claim::take(name, kMinute) != nullptr);
  CHECK_THROWS_AS(Claim::take(directory / "none/run", kMinute), FileError);
}

TEST_CASE("the claim of a process of this machine ends with it", "[cluster]") {
  const TemporaryDirectory directory;
  const fs::path name = directory / "run";
  CHECK(in_child([&] { return Claim::take(name, kMinute).release() != nullptr; }) == 1);
  CHECK(fs::exists(directory / "run.claim-1"));
  CHECK(claim_holder(name, kMinute).empty());
  {
    const auto claim = Claim::take(name, kMinute);
    REQUIRE(claim != nullptr);
    CHECK(fs::exists(directory / "run.claim-2"));
    CHECK(claim_holder(name, kMinute) == process_name());
    age(directory / "run.claim-2", std::chrono::hours(1));  // silent, but running
    CHECK(Claim::take(name, kMinute) == nullptr);
  }
  CHECK(fs::is_empty(directory / ""));
}

TEST_CASE("the claim of another machine ends with its lease", "[cluster]") {
  const TemporaryDirectory directory;
  const fs::path name = directory / "run", file = directory / "run.claim-1";
  write_file(file, kElsewhere);
  CHECK(Claim::take(name, kMinute) == nullptr);
  CHECK(claim_holder(name, kMinute) == "process 1 on elsewhere");
  age(file, std::chrono::seconds(50));
  CHECK(Claim::take(name, kMinute) == nullptr);
  age(file, std::chrono::seconds(15));
  CHECK(claim_holder(name, kMinute).empty());
  CHECK(Claim::take(name, kMinute) != nullptr);
  write_file(file, "");  // its holder was killed before it had written its name
  CHECK(Claim::take(name, kMinute) == nullptr);
}

TEST_CASE("a claim that another process has taken over no longer counts", "[cluster]") {
  const TemporaryDirectory directory;
  const auto claim = Claim::take(directory / "run", kMinute);
  write_file(directory / "run.claim-2", kElsewhere);
  CHECK_FALSE(claim->renew());
  fs::remove(directory / "run.claim-2");
  CHECK(claim->renew());
  write_file(directory / "run.claim-1", kElsewhere);  // a new file in its place
  CHECK_FALSE(claim->renew());
}

TEST_CASE("renewing starts the lease anew", "[cluster]") {
  const TemporaryDirectory directory;
  const auto claim = Claim::take(directory / "run", kMinute);
  const fs::path file = directory / "run.claim-1";
  const auto before = fs::last_write_time(file);
  age(file, std::chrono::hours(1));
  CHECK(claim->renew());
  CHECK(fs::last_write_time(file) >= before);
}

TEST_CASE("of many processes one takes over a claim", "[cluster]") {
  const TemporaryDirectory directory;
  for (int round = 0; round < 50; ++round) {
    const fs::path name = directory / std::to_string(round);
    if (round % 2 == 0) in_child([&] { return Claim::take(name, kMinute).release() != nullptr; });
    int go[2], tried[2], stop[2];  // pipes; a closed one wakes its readers
    REQUIRE((::pipe(go) == 0 && ::pipe(tried) == 0 && ::pipe(stop) == 0));
    constexpr int kProcesses = 6;
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
      children.push_back(::fork());
      if (children.back() != 0) continue;
      char byte = 0;
      ::close(go[1]);
      ::close(stop[1]);
      if (::read(go[0], &byte, 1) != 0) ::_exit(1);
      const auto claim = Claim::take(name, kMinute);
      if (::write(tried[1], claim != nullptr ? "y" : "n", 1) != 1) ::_exit(1);
      ::_exit(::read(stop[0], &byte, 1) == 0 ? 0 : 1);
    }
    ::close(go[1]);
    std::string answers(kProcesses, ' ');
    for (char& answer : answers) REQUIRE(::read(tried[0], &answer, 1) == 1);
    CHECK(std::ranges::count(answers, 'y') == 1);
    ::close(stop[1]);
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
    for (const int descriptor : {go[0], tried[0], tried[1], stop[0]}) ::close(descriptor);
  }
}
