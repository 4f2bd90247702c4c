#include "thimble/distributed/world.h"

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "distributed/mpi.h"

namespace thimble {

namespace {

std::unique_ptr<Communicator> started;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

double number_of(const char* name, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require<ConfigError>(error == std::errc() && end == text.data() + text.size() && value > 0,
                       "{}={}: must be a number of seconds above 0", name, text);
  return value;
}

}  // namespace

int launched_processes() {
  // Open MPI; MPICH, Intel MPI and Slurm's PMI; srun. A batch script of Slurm is no step of several tasks.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const std::string_view text = variable(name);
    int size = 0;
    std::from_chars(text.data(), text.data() + text.size(), size);
    if (size > 1) return size;
  }
  return 1;
}

Communicator& world() {
  if (started) return *started;
  const int size = launched_processes();
  if (size == 1 && variable("PMIX_RANK").empty()) return one_process();
  started = start_mpi();
  if (!started) {
    require<ConfigError>(
        size == 1,
        "started as {} processes, but built without MPI, so that each would do the same work; "
        "start one process, or build with -DTHIMBLE_MPI=ON",
        size);
    return one_process();
  }
  require<ConfigError>(
      started->size() >= size,
      "started as {} processes, but {} finds {}; use the launcher of the MPI that thimble is "
      "built with",
      size, mpi_name(), started->size());
  constexpr const char* kTimeout = "THIMBLE_RANK_TIMEOUT";
  if (const std::string_view text = variable(kTimeout); !text.empty())
    started->set_timeout(number_of(kTimeout, text));
  return *started;
}

Ending end_world(Ending mine) noexcept {
  try {
    return started ? started->end(mine) : mine;
  } catch (...) {  // no memory for the exchange
    return mine;
  }
}

}  // namespace thimble
