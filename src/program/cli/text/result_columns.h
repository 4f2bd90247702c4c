// The results of runs as columns of tables.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace thimble::cli {

struct ResultColumn {
  std::string_view title, metric;
  double factor;
  std::size_t width;
  int decimals;
  int rank = 0;

  std::string text(bool is_known, double value) const {
    return is_known ? fmt::format("{:.{}f}", factor * value, decimals) : "-";
  }
};

// The most important first. A width has room for a mark.
inline constexpr ResultColumn kResultColumns[] = {
    {"val. loss", "/validation/loss", 1, 11, 5},
    {"test loss", "/test/loss", 1, 11, 5},
    {"tokens %", "/test/accuracy", 100, 10, 2},
    {"sequences %", "/test/sequence_accuracy", 100, 12, 2},
    {"steps", "/steps", 1, 8, 0},
    {"s", "/seconds", 1, 8, 1},
    {"train loss", "/train/loss", 1, 11, 5, -1},
};

}  // namespace thimble::cli
