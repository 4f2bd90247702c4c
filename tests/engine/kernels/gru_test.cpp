#include "engine/kernels/gru.h"

#include <array>
#include <vector>

#include "catch.h"
#include "engine/kernels/matrix.h"

using namespace thimble;

namespace {

// The inputs of one channel of a cell: the three sums from the input, the three from the state, the state.
using Channel = std::array<Wide, 7>;

Wide logistic(Wide x) { return 1 / (1 + std::exp(-x)); }

Wide next_state(const Channel& v) {
  const Wide reset = logistic(v[0] + v[3]), update = logistic(v[1] + v[4]);
  const Wide candidate = std::tanh(v[2] + reset * v[5]);
  return (1 - update) * candidate + update * v[6];
}

// Returns the derivative of next_state by input `i`, from differences.
Wide slope(Channel v, std::size_t i) {
  constexpr Wide kStep = 1e-5L;
  v[i] += kStep;
  const Wide above = next_state(v);
  v[i] -= 2 * kStep;
  return (above - next_state(v)) / (2 * kStep);
}

const std::vector<std::int32_t> kLengths{3, 1, 2};

struct Cell {
  Matrix gates_x, gates_h, h, y, gates;
  kernels::GruStep step;

  Cell(std::int64_t n, std::int64_t gap, bool padding)
      : gates_x(3, 3 * n, 1, gap),
        gates_h(3, 3 * n, 2, gap + 1),
        h(3, n, 3, gap),
        y(3, n, 4, gap),
        gates(3, 3 * n) {
    if (padding) step = {kLengths, 1};
    kernels::gru_cell_forward(y, gates, gates_x, gates_h, h, step);
  }

  bool ended(std::int64_t row) const {
    return !step.lengths.empty() && kLengths[static_cast<std::size_t>(row)] <= step.t;
  }
  Channel channel(std::int64_t row, std::int64_t c) const {
    const std::int64_t n = h.cols();
    return {gates_x(row, c), gates_x(row, n + c), gates_x(row, 2 * n + c),
            gates_h(row, c), gates_h(row, n + c), gates_h(row, 2 * n + c),
            h(row, c)};
  }
};

}  // namespace

TEST_CASE("a GRU step mixes the state and the candidate, or keeps the state", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const bool padding : {false, true}) {
      CAPTURE(n, padding);
      const Cell cell(n, padding ? 3 : 0, padding);
      CHECK(worst_error(cell.y, [&](auto r, auto c) {
              return cell.ended(r) ? Wide(cell.h(r, c)) : next_state(cell.channel(r, c));
            }) < kRounding / 10);
      CHECK(cell.y.intact());
    }
  }
}

TEST_CASE("a GRU step's backward adds the slopes of the step", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const bool padding : {false, true}) {
      CAPTURE(n, padding);
      const std::int64_t gap = padding ? 3 : 0;
      const Cell cell(n, gap, padding);
      const Matrix dy(3, n, 5, gap), before_x(3, 3 * n, 6, gap), before_h(3, 3 * n, 7, gap),
          before(3, n, 8, gap);
      Matrix dgates_x = before_x, dgates_h = before_h, dh = before;
      kernels::gru_cell_backward(dgates_x, dgates_h, dh, dy, cell.gates_h, cell.h, cell.gates, cell.step);
      const auto gradient = [&](std::int64_t r, std::int64_t c, std::size_t i) {
        if (cell.ended(r)) return i == 6 ? Wide(dy(r, c)) : 0;
        return dy(r, c) * slope(cell.channel(r, c), i);
      };
      const double bound = std::max(kRounding, 1e-9);
      CHECK(worst_error(dgates_x, [&](auto r, auto i) {
              return before_x(r, i) + gradient(r, i % n, static_cast<std::size_t>(i / n));
            }) < bound);
      CHECK(worst_error(dgates_h, [&](auto r, auto i) {
              return before_h(r, i) + gradient(r, i % n, static_cast<std::size_t>(3 + i / n));
            }) < bound);
      CHECK(worst_error(dh, [&](auto r, auto c) { return before(r, c) + gradient(r, c, 6); }) < bound);
      CHECK(dgates_x.intact());
      CHECK(dgates_h.intact());
      CHECK(dh.intact());
    }
  }
}

TEST_CASE("a GRU step's backward skips what is not wanted", "[kernels]") {
  const Cell cell(17, 0, true);
  const Matrix dy(3, 17, 5);
  Matrix all_x(3, 51), all_h(3, 51), all(3, 17), only_x(3, 51), only_h(3, 51), only(3, 17);
  const auto run = [&](GradientView x, GradientView h, GradientView state) {
    kernels::gru_cell_backward(x, h, state, dy, cell.gates_h, cell.h, cell.gates, cell.step);
  };
  run(all_x, all_h, all);
  run(only_x, {}, {});
  run({}, only_h, {});
  run({}, {}, only);
  CHECK(worst_error(only_x, [&](auto r, auto c) { return all_x(r, c); }) == 0);
  CHECK(worst_error(only_h, [&](auto r, auto c) { return all_h(r, c); }) == 0);
  CHECK(worst_error(only, [&](auto r, auto c) { return all(r, c); }) == 0);
}

TEST_CASE("a GRU step saturates without overflow, and passes NaN on", "[kernels]") {
  for (const Real large : {Real(100), Real(1e4), std::numeric_limits<Real>::max() / 4}) {
    Matrix gates_x(4, 3), gates_h(4, 3), h(4, 1), y(4, 1), gates(4, 3);
    const Real signs[4][3] = {{1, 1, 1}, {1, -1, 1}, {-1, -1, -1}, {1, -1, 1}};
    for (std::int64_t r = 0; r < 4; ++r) {
      for (std::int64_t g = 0; g < 3; ++g) gates_x(r, g) = signs[r][g] * large;
      h(r, 0) = Real(0.5);
    }
    gates_x(3, 0) = std::numeric_limits<Real>::quiet_NaN();
    gates_h(3, 2) = 1;
    kernels::gru_cell_forward(y, gates, gates_x, gates_h, h, {});
    CAPTURE(large);
    CHECK(y(0, 0) == Real(0.5));  // update 1: the state stays
    CHECK(y(1, 0) == 1);          // update 0: the candidate
    CHECK(y(2, 0) == -1);
    CHECK(std::isnan(y(3, 0)));
  }
}
