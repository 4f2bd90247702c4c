// Child processes, and signals taken one by one.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace thimble {

// Starts command[0], a path, with these arguments. What it prints goes to `output`, its input is empty. It is
// in a process group of its own, so that Ctrl-C reaches it only through its parent, and gets SIGTERM when the
// calling thread ends, however that happens. If the command cannot be run, `output` says so and the exit
// status is 127. Throws FileError when `output` cannot be written or there are too many processes.
pid_t start_process(const std::vector<std::string>& command, const std::filesystem::path& output);

// The exit status of a child that has ended, 128 + the number of the signal if one ended it. A child is asked
// about until it has ended, and no more.
std::optional<int> exit_status(pid_t child);

// While it lives, SIGINT, SIGTERM and SIGCHLD do nothing but wait here. One at a time.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  // The next signal, once there is one; 0 when none has come after that many milliseconds.
  int wait(int milliseconds);
};

}  // namespace thimble
