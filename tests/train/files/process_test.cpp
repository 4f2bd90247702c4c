// Child processes and queued signals.
#include "train/files/process.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>

#include "catch.h"
#include "temporary_directory.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"

using namespace thimble;

namespace {

// Returns the exit status and output of a shell script, without polling.
std::pair<int, std::string> shell(const std::string& script, std::int64_t jobs = 1) {
  const TemporaryDirectory directory;
  const SignalQueue signals;
  const pid_t child = start_process({"/bin/sh", "-c", script, "name"}, directory / "out", jobs);
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  const std::optional<int> status = exit_status(child);
  return {status.value(), read_file(directory / "out")};
}

}  // namespace

TEST_CASE("a child has its arguments, no input, and both its outputs in a file", "[files]") {
  CHECK(shell("echo $0; echo wrong >&2; cat; exit 7") == std::pair(7, std::string("name\nwrong\n")));
}

TEST_CASE("a child that a signal ended has a status of its own", "[files]") {
  CHECK(shell("kill -TERM $$").first == 128 + SIGTERM);
}

TEST_CASE("a child leads a process group, and no signal is kept from it", "[files]") {
  CHECK(shell("[ $(cut -d' ' -f5 /proc/$$/stat) = $$ ]").first == 0);
  CHECK(shell("grep SigBlk /proc/self/status").second == "SigBlk:\t0000000000000000\n");
}

TEST_CASE("a child is no process of the launcher of its parent", "[files]") {
  const std::string names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "SLURM_CONF"};
  for (const std::string& name : names) ::setenv(name.c_str(), "1", 1);
  const std::string seen = shell("env | grep -E '^(OMPI|PMI|PMIX|SLURM)_'").second;
  for (const std::string& name : names) ::unsetenv(name.c_str());
  CHECK(seen == "SLURM_CONF=1\n");
}

TEST_CASE("jobs share the limit on data of their parent", "[files]") {
  rlimit before{};
  ::getrlimit(RLIMIT_DATA, &before);
  rlimit lower = before;
  lower.rlim_cur = rlim_t{400'000} << 10;
  ::setrlimit(RLIMIT_DATA, &lower);
  CHECK(shell("ulimit -d").second == "400000\n");
  CHECK(shell("ulimit -d", 4).second == "100000\n");
  ::setrlimit(RLIMIT_DATA, &before);
}

TEST_CASE("the rank of a process is that of its launcher", "[files]") {
  CHECK((launcher_rank().rank == 0 && launcher_rank().size == 1));
  const std::array<const char*, 4> launchers[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "2"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", "2(x1),1"}};
  for (const auto& [rank, size, local, two] : launchers) {
    ::setenv(rank, "2", 1);
    CHECK(launcher_rank().size == 1);  // a task of a job array has a SLURM_PROCID too
    ::setenv(size, "3", 1);
    CHECK((launcher_rank().rank == 2 && launcher_rank().size == 3 && launcher_rank().local == 1));
    ::setenv(local, two, 1);
    CHECK(launcher_rank().local == 2);
    ::unsetenv(local);
    ::unsetenv(rank);
    ::unsetenv(size);
  }
}

TEST_CASE("a child that still runs has no status", "[files]") {
  const TemporaryDirectory directory;
  const pid_t child = start_process({"/bin/sleep", "100"}, directory / "out");
  CHECK_FALSE(exit_status(child).has_value());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("what cannot be run or written", "[files]") {
  const TemporaryDirectory directory;
  const pid_t child = start_process({"/no/such/program"}, directory / "out");
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 127);
  CHECK(read_file(directory / "out") == "the program cannot be run\n");
  CHECK_THROWS_AS(start_process({"/bin/true"}, directory / "none/out"), FileError);
}

TEST_CASE("a limit of the process is named, with the remedy", "[files]") {
  const TemporaryDirectory directory;
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  std::exception_ptr queue, process;  // read later: sanitizers open files
  ::setrlimit(RLIMIT_NOFILE, &none);
  errno = ENOENT;  // of an earlier call
  try {
    const SignalQueue signals;
  } catch (...) {
    queue = std::current_exception();
  }
  try {
    start_process({"/bin/true"}, directory / "out");
  } catch (...) {
    process = std::current_exception();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  REQUIRE((queue && process));
  const std::string remedy = "Too many open files; raise the limit (ulimit -n)";
  CHECK_THROWS_WITH(std::rethrow_exception(queue), "a pipe for signals cannot be made: " + remedy);
  CHECK_THROWS_WITH(std::rethrow_exception(process),
                    (directory / "out").string() + ": cannot be written: " + remedy);
}

TEST_CASE("queued signals come one by one, and afterwards do what they did before", "[files]") {
  struct sigaction before {};
  ::sigaction(SIGTERM, nullptr, &before);
  {
    SignalQueue signals;
    ::raise(SIGTERM);
    ::raise(SIGINT);
    ::raise(SIGCHLD);
    CHECK(signals.wait(1000) == SIGTERM);
    CHECK(signals.wait(1000) == SIGINT);
    CHECK(signals.wait(1000) == SIGCHLD);
    for (const int signal : kStopSignals) {
      ::raise(signal);
      CHECK(signals.wait(1000) == signal);
    }
  }
  struct sigaction after {};
  ::sigaction(SIGTERM, nullptr, &after);
  CHECK(after.sa_handler == before.sa_handler);
}

TEST_CASE("a signal that was ignored stays ignored, here and in children, unless it insists", "[files]") {
  struct sigaction before[2]{}, ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGHUP, &ignore, &before[0]);
  ::sigaction(SIGINT, &ignore, &before[1]);
  {
    SignalQueue signals;
    ::raise(SIGHUP);
    ::raise(SIGINT);
    CHECK(signals.wait(1000) == SIGINT);
  }
  CHECK(shell("kill -HUP $$; echo on").second == "on\n");
  CHECK(shell("kill -INT $$; echo on").first == 128 + SIGINT);
  CHECK(shell("kill -USR1 $$; echo on").first == 128 + SIGUSR1);
  ::sigaction(SIGHUP, &before[0], nullptr);
  ::sigaction(SIGINT, &before[1], nullptr);
}
