#include "train/distributed/mpi.h"

namespace thimble {

std::unique_ptr<Communicator> start_mpi(double) { return nullptr; }

std::string mpi_name() { return ""; }

}  // namespace thimble
