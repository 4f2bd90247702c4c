// The communicator of MPI: mpi.cpp is part of the program if it is built with MPI, mpi_missing.cpp otherwise.
#pragma once

#include <memory>

#include "thimble/train/communicator.h"

namespace thimble {

// Returns the communicator of all processes of the launcher, or null if the program is built without MPI. Ends the
// process when the others have not come within `timeout` seconds.
std::unique_ptr<Communicator> start_mpi(double timeout);

// Returns the name and version of the MPI library, or "" without one.
std::string mpi_name();

}  // namespace thimble
