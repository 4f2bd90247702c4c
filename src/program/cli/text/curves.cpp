#include "program/cli/text/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

constexpr std::size_t kRows = 8, kNumber = 8;  // lines of a plot, and columns of the numbers beside it

// A quantity of a split: its mean in each column, NaN where it has no step, and its last value.
struct Course {
  std::vector<double> means;
  double last = std::nan("");
};

using Quantity = double CurvePoint::*;

Course course(const std::vector<CurvePoint>& points, const char* split, Quantity quantity,
              std::size_t columns) {
  Course out{std::vector<double>(columns, std::nan(""))};
  std::vector<double> counts(columns);
  const std::int64_t last = std::max<std::int64_t>(1, points.back().step);
  for (const CurvePoint& point : points) {
    if (point.split != split || !std::isfinite(point.*quantity)) continue;
    const auto x = static_cast<std::size_t>(point.step * (std::ssize(counts) - 1) / last);
    const double before = counts[x]++ > 0 ? out.means[x] : 0;
    out.means[x] = before + (point.*quantity - before) / counts[x];
    out.last = point.*quantity;
  }
  return out;
}

// Draws a quantity, from 0 to 100 % or from the lowest to the highest loss. A character has 2 by 4 dots of a line in
// braille, or 1 by 2 in ASCII.
std::string plot(const std::vector<CurvePoint>& points, Quantity quantity, bool plain, std::size_t width) {
  const bool is_loss = quantity == &CurvePoint::loss;
  const auto number = [&](double x) {
    return is_loss ? fmt::format("{:.4f}", x) : fmt::format("{:.1f} %", 100 * x);
  };
  const std::size_t columns = width - kNumber - 2, across = plain ? 1 : 2, down = plain ? 2 : 4;
  const Course line = course(points, "train", quantity, columns * across),
               marks = course(points, "validation", quantity, columns);
  double low = is_loss ? std::nan("") : 0, high = is_loss ? low : 1;
  for (const Course& values : {line, marks})
    for (const double value : values.means) {
      low = std::fmin(low, value);
      high = std::fmax(high, value);
    }
  const auto row = [&](double value, std::size_t rows) {
    return std::round((high - value) / (high > low ? high - low : 1) * static_cast<double>(rows - 1));
  };

  std::vector<unsigned> bits(columns * kRows);
  std::array<double, 2> from{-1, 0};  // the column and the row of the dot before
  for (std::size_t column = 0; column < line.means.size(); ++column) {
    if (std::isnan(line.means[column])) continue;
    const std::array to{static_cast<double>(column), row(line.means[column], kRows * down)};
    if (from[0] < 0) from = to;
    const double steps = std::max({1.0, to[0] - from[0], std::abs(to[1] - from[1])});
    for (double k = 0; k <= steps; ++k) {
      constexpr unsigned kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
      const auto x = static_cast<std::size_t>(std::round(std::lerp(from[0], to[0], k / steps)));
      const auto y = static_cast<std::size_t>(std::round(std::lerp(from[1], to[1], k / steps)));
      bits[y / down * columns + x / across] |= kBits[y % down][x % across];
    }
    from = to;
  }

  std::string out = is_loss ? "loss" : "tokens";
  if (!std::isnan(line.last))
    out += fmt::format("   {} training {}", plain ? "." : "\u2812", number(line.last));
  if (!std::isnan(marks.last)) out += fmt::format("   o validation {}", number(marks.last));
  out = wrapped(out, width, 2);
  for (std::size_t y = 0; y < kRows; ++y) {
    const double value = std::lerp(high, low, static_cast<double>(y) / (kRows - 1));
    std::string text = fmt::format("{:>{}} |", number(value), kNumber);
    for (std::size_t x = 0; x < columns; ++x) {
      const unsigned dots = bits[y * columns + x];
      if (row(marks.means[x], kRows) == static_cast<double>(y))
        text += 'o';
      else if (plain || dots == 0)
        text += " '.:"[dots];
      else
        text += {'\xE2', static_cast<char>(0xA0 | dots >> 6), static_cast<char>(0x80 | (dots & 0x3F))};
    }
    out += text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
  }
  return out + fmt::format("{:>{}}  0{:>{}}\n", "step", kNumber, points.back().step, columns - 1);
}

}  // namespace

std::string curves_text(const std::vector<CurvePoint>& points, bool plain, std::size_t width) {
  if (points.empty()) return "";
  return plot(points, &CurvePoint::loss, plain, width) + "\n" +
         plot(points, &CurvePoint::accuracy, plain, width);
}

}  // namespace thimble::cli
