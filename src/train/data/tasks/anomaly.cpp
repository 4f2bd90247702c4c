#include <algorithm>
#include <cmath>

#include "engine/core/portable_math.h"
#include "thimble/engine/error.h"
#include "thimble/train/task.h"

namespace thimble::tasks::anomaly {
namespace {

// A torus of side x side cells. Any two points of a cluster are at most 2 reach apart along both axes; the
// odd one is at least far > 3 reach from the center along one axis, so more than 2 reach from each point.
struct Torus {
  std::int64_t side, reach, far;

  explicit Torus(const TaskConfig& config)
      : side(std::llround(std::sqrt(static_cast<double>(config.symbols)))),
        reach(side / 8),
        far(3 * side / 8 + 1) {}

  std::int64_t near_side() const { return 2 * far - 1; }  // of the square without the odd point
  std::int32_t cell(std::int64_t x, std::int64_t y) const {
    return static_cast<std::int32_t>(y % side * side + x % side);
  }
};

void check(const TaskConfig& config) {
  const std::int64_t side = Torus(config).side;
  require<DataError>(side * side == config.symbols && side >= 8,
                     "task anomaly: symbols {}: must be a square number of at least 64; set 64, 81, 100, ...",
                     config.symbols);
  require<DataError>(config.length >= 3,
                     "task anomaly: length {}: must be at least 3, as 2 points have no odd one",
                     config.length);
}

// Returns the sum of three uniforms, nearly Gaussian, with values up to `reach` and a standard deviation of
// reach / 3, rounded to a whole number.
std::int64_t draw_offset(SampleRng& rng, std::int64_t reach) {
  constexpr std::int64_t kSteps = 1 << 16;
  std::int64_t sum = 0;
  for (int i = 0; i < 3; ++i) sum += rng.below(2 * kSteps + 1) - kSteps;
  return std::llround(static_cast<double>(sum * reach) / (3 * kSteps));
}

// Returns a uniform cell outside of the near x near square whose first cell is (x, y).
std::int32_t draw_far_cell(const Torus& torus, SampleRng& rng, std::int64_t x, std::int64_t y) {
  const std::int64_t side = torus.side, near = torus.near_side(), beside = side - near;
  const std::int64_t drawn = rng.below(side * side - near * near);
  const std::int64_t below = drawn - near * beside;
  return below < 0 ? torus.cell(x + near + drawn % beside, y + drawn / beside)
                   : torus.cell(x + below % side, y + near + below / side);
}

void sample(const TaskConfig& config, SampleRng& rng, Example& example) {
  const Torus torus(config);
  const std::int64_t x = rng.below(torus.side) + torus.side, y = rng.below(torus.side) + torus.side;
  const auto odd = static_cast<std::size_t>(rng.below(config.length));
  example.input.resize(static_cast<std::size_t>(config.length));
  for (std::int32_t& point : example.input) {
    const std::int64_t dx = draw_offset(rng, torus.reach), dy = draw_offset(rng, torus.reach);
    point = torus.cell(x + dx, y + dy);
  }
  example.input[odd] = draw_far_cell(torus, rng, x - torus.far + 1, y - torus.far + 1);
  example.target.assign(1, example.input[odd]);
}

std::vector<std::string> tokens(const TaskConfig& config) {
  const std::int64_t side = Torus(config).side;
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < config.symbols; ++i)
    names.push_back(std::to_string(i % side) + "," + std::to_string(i / side));
  return names;
}

// Returns how many lists of `count` whole numbers have minimum 0 and maximum `extent`.
double lists(std::int64_t count, double extent) {
  const double all = extent + 1, but_one = extent / all, but_two = std::max(extent - 1, 0.0) / all;
  return portable::power(all, count) *
         (1 - 2 * portable::power(but_one, count) + portable::power(but_two, count));
}

// Sums over the extents of a cluster along both axes: the number of clusters times that of cells far from one
// of its possible centers, which form a rectangle.
double distinct_inputs(const TaskConfig& config) {
  const Torus torus(config);
  const auto points = static_cast<double>(config.length - 1), cells = static_cast<double>(config.symbols);
  const std::int64_t widest = 2 * torus.reach, never = torus.near_side() - widest;
  double sum = 0;
  for (std::int64_t w = 0; w <= widest; ++w) {
    for (std::int64_t h = 0; h <= widest; ++h) {
      const auto odd_cells = static_cast<double>(config.symbols - (never + w) * (never + h));
      sum += lists(points, static_cast<double>(w)) * lists(points, static_cast<double>(h)) * odd_cells;
    }
  }
  return static_cast<double>(config.length) * cells * sum;
}

}  // namespace

Task task() {
  return {.summary = "the odd one out of a set of points",
          .definition =
              "Tokens are the cells of a square grid that wraps around, `symbols` of them, n along each "
              "side. The input is a set of `length` cells in any order: all but one lie around a uniform "
              "center, and the answer is the odd one. Along both axes a point is off the center by the sum "
              "of three equal uniforms, nearly a Gaussian, with standard deviation m/3 and never more than "
              "m = floor(n/8), to the nearest cell; the odd one is uniform over the cells that along some "
              "axis are more than 3n/8 from the center. So any two of the others are within 2m of each "
              "other along both axes, and the odd one is not within 2m of any. Set anomaly detection, "
              "Zaheer et al. 2017, Deep Sets; with images in tutorial 6 of the deep-learning course of the "
              "University of Amsterdam (Lippe 2020).",
          .keys = {"symbols", "length"},
          .check = check,
          .tokens = tokens,
          .size = one_per_sequence,
          .sample = sample,
          .distinct_inputs = distinct_inputs,
          .chance = one_in_symbols,
          .relevant = answer_positions,
          .kinds = {"odd point"},
          .candidates = all_positions,
          .vary = sample};
}

}  // namespace thimble::tasks::anomaly
