#include "engine/kernels/unfold.h"

#include <vector>

#include "catch.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/reference_sequence.h"

using namespace thimble;

TEST_CASE("windows hold the neighbors of a position, and both directions agree", "[kernels]") {
  const std::vector<std::int32_t> lengths{5, 0, 3};
  for (const std::int64_t window : {1, 2, 3, 7}) {
    for (const std::int64_t before : {std::int64_t{0}, window / 2, window - 1}) {
      for (const bool padding : {false, true}) {
        for (const std::int64_t channels : {1, 3, 17}) {
          CAPTURE(window, before, padding, channels);
          kernels::UnfoldSizes sizes{5, window, before};
          if (padding) sizes.lengths = lengths;
          const Matrix x(15, channels, 1, 2), dy(15, channels * window, 2, 1);
          Matrix y(15, channels * window, 4, 1), dx(15, channels, 3, 2);
          const WideMatrix wanted_y(y), wanted_dx(dx);
          kernels::unfold_forward(y, x, sizes);
          kernels::unfold_backward(dx, dy, sizes);
          reference::unfold_forward(wanted_y, WideMatrix(x), sizes);
          reference::unfold_backward(wanted_dx, WideMatrix(dy), sizes);
          CHECK(worst_error(y, wanted_y) == 0);
          CHECK(worst_error(dx, wanted_dx) < kRounding);
          CHECK(y.intact());
          CHECK(dx.intact());
        }
      }
    }
  }
}
