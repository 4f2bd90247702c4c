#include "train/distributed/world.h"

#include <cstdlib>
#include <optional>
#include <string_view>

#include "train/distributed/mpi.h"
#include "train/files/process.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

std::unique_ptr<Communicator> started;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the seconds that the user lets ranks wait for others, if any.
std::optional<double> rank_timeout() {
  constexpr const char* kName = "THIMBLE_RANK_TIMEOUT";
  const std::string_view text = variable(kName);
  if (text.empty()) return std::nullopt;
  const std::optional<double> seconds = parse_number<double>(text);
  require<ConfigError>(seconds && *seconds > 0, "{}={}: must be a number of seconds above 0", kName, text);
  return seconds;
}

}  // namespace

Communicator& world() {
  if (started) return *started;
  const std::int64_t size = launcher_rank().size;
  if (size <= 1 && variable("PMIX_RANK").empty()) return one_process();
  constexpr double kStart = 300;  // seconds for all processes to start
  const std::optional<double> timeout = rank_timeout();
  started = start_mpi(timeout.value_or(kStart));
  if (!started) {
    require<ConfigError>(
        size <= 1,
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
  if (timeout) started->set_timeout(*timeout);
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
