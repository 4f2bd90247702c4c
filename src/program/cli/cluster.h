// What the add-on `cluster` does for the program: other processes that train the same model, and jobs of Slurm.
#pragma once

#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "thimble/train/ranks.h"

namespace thimble {

// How a rank ended, as an exit status.
struct Ending {
  int status = 0;
  bool has_message = false;  // false where the status is that of another rank
};

// Thrown while a rank waits for others, when one of them has ended with an error, which it reports itself.
class PeerError : public Error {
 public:
  PeerError(int rank, int status)
      : Error(fmt::format("rank {} ended with exit status {}", rank, status)), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

// The add-on; by itself, the program without one.
class Cluster {
 public:
  virtual ~Cluster() = default;
  // Returns the ranks that a launcher, such as mpirun or srun, has started with this process; one_process() if it is
  // alone. Throws ConfigError if it is not and the program cannot reach the others, since all would do the same work.
  virtual Ranks& ranks();
  // Collective: ends the communication with them. Returns the status that all ranks end with, and whether this rank reports
  // its error.
  virtual Ending end(Ending mine) noexcept { return mine; }
};

Cluster& cluster();
void set_cluster(Cluster&);

}  // namespace thimble
