#include "engine/kernels/attention/head_norm.h"

#include "catch.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/reference_attention.h"

using namespace thimble;

TEST_CASE("every head is normalized by itself, and its backward adds", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t heads : {1, 3}) {
      CAPTURE(n, heads);
      const Matrix x(4, heads * n, 1, 5), dy(4, heads * n, 2, 3);
      Matrix y(4, heads * n, 3, 2), rrms(4, heads, 4, 1), dx(4, heads * n, 5, 4);
      const WideMatrix wanted_y(y), wanted_rrms(rrms), wanted_dx(dx);
      kernels::head_norm_forward(y, rrms, x, heads, kEpsilon);
      kernels::head_norm_backward(dx, dy, y, rrms, heads);
      reference::head_norm_forward(wanted_y, wanted_rrms, WideMatrix(x), heads, Wide(kEpsilon));
      reference::head_norm_backward(wanted_dx, WideMatrix(dy), wanted_y, wanted_rrms, heads);
      CHECK(worst_error(y, wanted_y) < kRounding);
      CHECK(worst_error(rrms, wanted_rrms) < kRounding);
      CHECK(worst_error(dx, wanted_dx) < (n <= 2 ? 100 : 1) * kRounding);  // the terms all but cancel
      CHECK((y.intact() && rrms.intact() && dx.intact()));
    }
  }
}
