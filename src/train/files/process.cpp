#include "train/files/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

int queue[2];  // a pipe: read from 0, written to 1
std::vector<std::pair<int, struct sigaction>> before_queue;

// Returns whether the stop signal is in effect.
bool stops(int signal) {
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  return insists(signal) || now.sa_handler != SIG_IGN;
}

void enqueue(int signal) {
  const int error = errno;
  const auto byte = static_cast<unsigned char>(signal);
  // Fails only when thousands of signals are queued already.
  [[maybe_unused]] const ssize_t written = ::write(queue[1], &byte, 1);
  errno = error;
}

// Returns the environment without what Open MPI, MPICH and Slurm tell a process of theirs. SLURM_CONF is where
// the commands of Slurm find their configuration.
std::vector<char*> environment_of_child() {
  constexpr std::string_view kPrefixes[] = {"OMPI_",  "PMI_",  "PMIX_",     "PRTE_",
                                            "HYDRA_", "HYDI_", "MPI_LOCAL", "SLURM_"};
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto starts = [&](std::string_view prefix) { return text.starts_with(prefix); };
    if (text.starts_with("SLURM_CONF=") || std::ranges::none_of(kPrefixes, starts)) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

// Makes the child process run the command. Calls only functions that are safe after fork in a process with
// threads (signal-safety(7)).
[[noreturn]] void become(char* const* command, char* const* environment, int input, int output, pid_t parent,
                         const sigset_t& signals, const rlimit& data) {
  ::signal(SIGCHLD, SIG_DFL);
  for (const int signal : kStopSignals)
    if (stops(signal)) ::signal(signal, SIG_DFL);
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(128 + SIGTERM);  // the parent ended before prctl
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::setrlimit(RLIMIT_DATA, &data);
  ::execve(command[0], command, environment);
  constexpr std::string_view kMessage = "the program cannot be run\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(127);
}

}  // namespace

Rank launcher_rank() {
  // Of srun, the number of tasks is set for a step alone, and tasks of machines are written as "2(x3),1": the first counts.
  struct Variables {
    const char *rank, *size, *local;
  };
  constexpr Variables kVariables[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"},
  };
  const auto number = [](const char* name) -> std::optional<std::int64_t> {
    const char* text = std::getenv(name);
    return text == nullptr ? std::nullopt
                           : parse_number<std::int64_t>(std::string_view(text, std::strcspn(text, "(,")));
  };
  for (const auto& [rank, size, local] : kVariables)
    if (const auto r = number(rank), n = number(size); r && n)
      return {*r, *n, std::clamp<std::int64_t>(number(local).value_or(1), 1, *n)};
  return {};
}

pid_t start_process(const std::vector<std::string>& command, const std::filesystem::path& output,
                    std::int64_t jobs) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const std::vector<char*> environment = environment_of_child();
  const int out = open_regular(output, O_WRONLY | O_CREAT);
  [[maybe_unused]] const int emptied = ::ftruncate(out, 0);  // the first write reports a full disk
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in < 0) {
    const int error = errno;
    ::close(out);
    throw FileError(fmt::format("/dev/null: cannot be read: {}", system_message(error)));
  }

  rlimit data{};
  ::getrlimit(RLIMIT_DATA, &data);
  if (data.rlim_cur != RLIM_INFINITY) data.rlim_cur /= static_cast<rlim_t>(jobs);
  std::fflush(nullptr);  // the thread sanitizer's _exit would write the child's copy of the buffers
  // No signal may reach the child while it has the handlers and the queue of its parent.
  sigset_t all, signals;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &signals);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) become(arguments.data(), environment.data(), in, out, parent, signals, data);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &signals, nullptr);
  ::close(in);
  ::close(out);
  require<FileError>(
      child > 0, "{}: its process cannot be started: {}{}", output.string(), system_message(error),
      error == EAGAIN ? "; run fewer at once (--jobs), or raise the limit on processes (ulimit -u)" : "");
  return child;
}

std::optional<int> exit_status(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, WNOHANG) != child) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<int> stop_signals() {
  std::vector<int> signals;
  std::ranges::copy_if(kStopSignals, std::back_inserter(signals), stops);
  return signals;
}

SignalQueue::SignalQueue() {
  const bool made = ::pipe2(queue, O_CLOEXEC) == 0;  // before errno is read
  require<FileError>(made, "a pipe for signals cannot be made: {}", system_message(errno));
  ::fcntl(queue[1], F_SETFL, O_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = enqueue;
  action.sa_flags = SA_RESTART;
  std::vector<int> queued = stop_signals();
  queued.push_back(SIGCHLD);
  before_queue.clear();
  for (const int signal : queued)
    ::sigaction(signal, &action, &before_queue.emplace_back(signal, action).second);
}

SignalQueue::~SignalQueue() {
  for (const auto& [signal, action] : before_queue) ::sigaction(signal, &action, nullptr);
  ::close(queue[0]);
  ::close(queue[1]);
}

int SignalQueue::wait(int milliseconds) {
  unsigned char byte = 0;
  // The thread sanitizer runs handlers of signals that come while a call waits only where that is poll.
  pollfd readable{.fd = queue[0], .events = POLLIN, .revents = 0};
  do {
    if (::poll(&readable, 1, milliseconds) == 0) return 0;
  } while (readable.revents == 0 || ::read(queue[0], &byte, 1) != 1);
  return byte;
}

}  // namespace thimble
