// The ranks that a launcher, such as mpirun or srun, has started with this process.
#pragma once

#include "thimble/train/communicator.h"

namespace thimble {

// Returns the communicator of all processes that the launcher started, through MPI, which the first call
// starts; one_process() if this process is alone. Throws ConfigError when the program is built without MPI, or
// with the MPI of another launcher, since every process would do the same work.
Communicator& world();

// Ends world(), see Communicator::end(). Without world(), returns its argument.
Ending end_world(Ending mine) noexcept;

}  // namespace thimble
