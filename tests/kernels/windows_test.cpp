#include "thimble/kernels/windows.h"

#include <vector>

#include "catch.h"
#include "kernels/matrix.h"

using namespace thimble;

namespace {

// x at a position of a sequence, which is 0 where there is none.
Real padded(const Matrix& x, const kernels::WindowSizes& s, std::int64_t sequence, std::int64_t t,
            std::int64_t c) {
  const std::int64_t length =
      s.lengths.empty() ? s.time : std::int64_t{s.lengths[static_cast<std::size_t>(sequence)]};
  return t < 0 || t >= length ? 0 : x(sequence * s.time + t, c);
}

}  // namespace

TEST_CASE("windows hold the neighbours of a position, and both directions agree", "[kernels]") {
  const std::vector<std::int32_t> lengths{5, 0, 3};
  for (const std::int64_t window : {1, 2, 3, 7}) {
    for (const std::int64_t before : {std::int64_t{0}, window / 2, window - 1}) {
      for (const bool padding : {false, true}) {
        for (const std::int64_t channels : {1, 3, 17}) {
          CAPTURE(window, before, padding, channels);
          kernels::WindowSizes sizes{5, window, before};
          if (padding) sizes.lengths = lengths;
          const Matrix x(15, channels, 1, 2), dy(15, channels * window, 2, 1), dx_before(15, channels, 3, 2);
          Matrix y(15, channels * window, 4, 1), dx = dx_before;
          kernels::windows_forward(y, x, sizes);
          CHECK(worst_error(y, [&](auto row, auto c) {
                  return padded(x, sizes, row / 5, row % 5 + c % window - before, c / window);
                }) == 0);
          CHECK(y.intact());
          kernels::windows_backward(dx, dy, sizes);
          CHECK(worst_error(dx, [&](auto row, auto c) {
                  long double sum = dx_before(row, c);
                  for (std::int64_t other = 0; other < 15; ++other) {
                    const std::int64_t k = row - other + before;  // where row stands in the window of other
                    const bool held = other / 5 == row / 5 && k >= 0 && k < window &&
                                      (!padding || row % 5 < lengths[static_cast<std::size_t>(row / 5)]);
                    if (held) sum += dy(other, c * window + k);
                  }
                  return sum;
                }) < kRounding);
          CHECK(dx.intact());
        }
      }
    }
  }
}
