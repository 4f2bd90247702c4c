// The lab computes matrix products with its own kernels alone.
#include "engine/kernels/products/backend.h"

namespace thimble {

bool uses_openblas() { return false; }

}  // namespace thimble
