// Holds ReLUs on one side of their kink, for numerical derivatives.
#pragma once

#include <cstddef>
#include <vector>

#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// While an object lives, every ReLU of its thread stays on the side on which it was in the first pass, so that a
// loss is smooth around the point of that pass and has the same gradient there. Passes must be alike.
class HeldSigns {
 public:
  HeldSigns();  // throws Error if the thread has another
  ~HeldSigns();
  HeldSigns(const HeldSigns&) = delete;
  HeldSigns& operator=(const HeldSigns&) = delete;

  // Starts a pass.
  void rewind() { next_ = 0; }

  // For ReLU, with y and x of one shape. Sets y to x where x was above 0 in the first pass and no longer is, and
  // to 0 where only now it is. Does nothing in a thread without held signs.
  static void hold(MatrixView y, ConstMatrixView x);

 private:
  std::vector<unsigned char> positive_;  // for each element in the order of calls
  std::size_t next_ = 0;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
