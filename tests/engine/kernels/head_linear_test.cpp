#include "engine/kernels/attention/head_linear.h"

#include "catch.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/reference_attention.h"

using namespace thimble;

namespace {

struct Sizes {
  std::int64_t rows, heads, in, out, gap;
};

void check_head_linear(const Sizes& s) {
  CAPTURE(s.rows, s.heads, s.in, s.out, s.gap);
  const Matrix x(s.rows, s.heads * s.in, 1, s.gap), weight(s.heads * s.in, s.out, 2, s.gap);
  const Matrix dy(s.rows, s.heads * s.out, 3, s.gap);
  Matrix y(s.rows, s.heads * s.out, 6, s.gap), dx(s.rows, s.heads * s.in, 4, s.gap),
      dw(s.heads * s.in, s.out, 5, s.gap);
  const WideMatrix wanted_y(y), wanted_dx(dx), wanted_dw(dw), wide_x(x), wide_weight(weight);
  kernels::head_linear_forward(y, x, weight, s.heads);
  kernels::head_linear_backward(dx, dw, dy, x, weight, s.heads);
  reference::head_linear_forward(wanted_y, wide_x, wide_weight, s.heads);
  reference::head_linear_backward(wanted_dx, wanted_dw, WideMatrix(dy), wide_x, wide_weight, s.heads);
  CHECK(worst_error(y, wanted_y) < kRounding);
  CHECK(worst_error(dx, wanted_dx) < kRounding);
  CHECK(worst_error(dw, wanted_dw) < kRounding);
  CHECK((y.intact() && dx.intact() && dw.intact()));
}

}  // namespace

TEST_CASE("every head's columns go through its own matrix", "[kernels]") {
  for (const std::int64_t heads : {1, 2, 3}) {
    for (const std::int64_t in : {1, 3, 16, 20}) {
      for (const std::int64_t out : {1, 5, 16}) {
        for (const std::int64_t gap : {0, 3}) check_head_linear({7, heads, in, out, gap});
      }
    }
  }
}

TEST_CASE("head_linear's backward skips what is not wanted", "[kernels]") {
  const Matrix x(4, 6, 1), weight(6, 5, 2), dy(4, 10, 3);
  Matrix dx(4, 6), dw(6, 5), dx_alone(4, 6), dw_alone(6, 5);
  kernels::head_linear_backward(dx, dw, dy, x, weight, 2);
  kernels::head_linear_backward(dx_alone, {}, dy, x, weight, 2);
  kernels::head_linear_backward({}, dw_alone, dy, x, weight, 2);
  CHECK(worst_error(dx_alone, [&](auto r, auto c) { return dx(r, c); }) == 0);
  CHECK(worst_error(dw_alone, [&](auto r, auto c) { return dw(r, c); }) == 0);
}
