// Registers the ranks of MPI with the program.
#include <cstdlib>
#include <optional>
#include <string_view>

#include "addons/cluster/mpi.h"
#include "program/cli/cluster.h"
#include "train/files/process.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

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

// The processes that a launcher has started with this one, through MPI, which the first call starts.
class MpiCluster : public Cluster {
 public:
  MpiCluster() { set_cluster(*this); }

  Ranks& ranks() override {
    if (started_) return *started_;
    const std::int64_t size = launcher_rank().size;
    if (size <= 1 && variable("PMIX_RANK").empty()) return one_process();
    constexpr double kStart = 300;  // seconds for all processes to start
    const std::optional<double> timeout = rank_timeout();
    started_ = start_mpi(timeout.value_or(kStart));
    require<ConfigError>(
        started_->size() >= size,
        "started as {} processes, but {} finds {}; use the launcher of the MPI that thimble is built with",
        size, mpi_name(), started_->size());
    if (timeout) started_->set_timeout(*timeout);
    return *started_;
  }

  Ending end(Ending mine) noexcept override {
    try {
      return started_ ? started_->end(mine) : mine;
    } catch (...) {  // no memory for the exchange
      return mine;
    }
  }

 private:
  std::unique_ptr<Communicator> started_;
};

MpiCluster registered;

}  // namespace

}  // namespace thimble
