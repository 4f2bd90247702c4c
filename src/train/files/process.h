// Child processes, and a queue of signals.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace thimble {

// A process among those that a launcher, such as mpirun or srun, has started; `local` of them on this machine.
struct Rank {
  std::int64_t rank = 0, size = 1, local = 1;
};
// Returns the rank of this process by the variables of Open MPI, MPICH (also Intel MPI) or srun; 0 of 1
// without a launcher, and in a batch script of Slurm, which is no step of several tasks.
Rank launcher_rank();

// Starts command[0], a path, with these arguments, and returns its id. Its input is empty, its output goes to
// the file `output`, its limit on data is that of this process divided by `jobs`, and its environment has no
// variables of a launcher, whose process it is not. It runs in a process group of its own, so that Ctrl-C
// reaches it only through its parent, and gets SIGTERM when the calling thread ends. If the command cannot be run, a message is written to `output` and the exit status is
// 127. Throws FileError, naming `output`, when that cannot be written or there are too many processes.
pid_t start_process(const std::vector<std::string>& command, const std::filesystem::path& output,
                    std::int64_t jobs = 1);

// Returns the exit status of a child that has ended, or 128 + the number of the signal that ended it; nothing
// while it runs. Not to be called again for a child that has ended.
std::optional<int> exit_status(pid_t child);

// The signals that ask a program to save and stop. SIGHUP: the terminal is gone; SIGUSR1, SIGUSR2, SIGXCPU: a
// limit on time is near.
inline constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};

// Returns whether the signal, sent again, means to stop at once. Of the others, the kernel and the shell may
// send one each.
constexpr bool insists(int signal) { return signal == SIGINT || signal == SIGTERM; }

// Returns the stop signals that this process was not started to ignore, as under nohup. SIGINT and SIGTERM are
// among them in any case: shells ignore SIGINT for commands in the background, which scripts then send to them.
std::vector<int> stop_signals();

// A queue that receives SIGCHLD and the stop signals during its lifetime, in place of their usual effect.
// There must be at most one at a time.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  // Waits for the next signal and returns its number, or 0 after that many milliseconds.
  int wait(int milliseconds);
};

}  // namespace thimble
