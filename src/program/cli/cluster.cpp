#include "program/cli/cluster.h"

#include "train/files/process.h"

namespace thimble {

namespace {

Cluster none;
Cluster* current = &none;

}  // namespace

Ranks& Cluster::ranks() {
  const std::int64_t size = launcher_rank().size;
  require<ConfigError>(
      size <= 1,
      "started as {} processes, but built without MPI, so that each would do the same work; start one process, or build with -DTHIMBLE_MPI=ON",
      size);
  return one_process();
}

Cluster& cluster() { return *current; }

void set_cluster(Cluster& other) { current = &other; }

}  // namespace thimble
