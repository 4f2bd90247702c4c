// Runs that processes take; what a sweep trains and writes is in tests/cases.
#include "program/sweep/run_queue.h"

#include <sys/wait.h>
#include <unistd.h>

#include "catch.h"
#include "thimble/engine/error.h"
#include "train/files/lock.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace fs = std::filesystem;

TEST_CASE("a run is taken by one process, whose end frees it", "[sweep]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  std::unique_ptr<TakenRun> taken = run_queue().take(run);
  REQUIRE(taken != nullptr);
  CHECK(taken->renew());
  CHECK(run_queue().holder(run) == process_name());
  CHECK(run_queue().take(run) == nullptr);
  CHECK(run_queue().take(directory / "run2") != nullptr);
  taken.reset();
  CHECK(directory.files() == 0);
  CHECK(run_queue().holder(run).empty());
  CHECK_THROWS_AS(run_queue().take(directory / "none/run"), FileError);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::unique_ptr<TakenRun> held = run_queue().take(run);
    ::_exit(held != nullptr ? 0 : 1);  // without the destructor
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(fs::exists(directory / "run.lock"));
  CHECK(run_queue().take(run) != nullptr);
}
