// The communicator of MPI.
#pragma once

#include <memory>

#include "addons/cluster/communicator.h"

namespace thimble {

// Returns the communicator of all processes of the launcher. Ends the
// process when the others have not come within `timeout` seconds.
std::unique_ptr<Communicator> start_mpi(double timeout);

// Returns the name and version of the MPI library.
std::string mpi_name();

}  // namespace thimble
