#include "train/files/text/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace thimble {

std::string format_number(double x, int digits) {
  constexpr double kMaxValue = 1e8;
  if (std::isinf(x) || std::isnan(x)) return std::isinf(x) ? "never" : "-";
  if (x == std::round(x) && std::abs(x) < kMaxValue) return fmt::format("{:.0f}", x);
  return fmt::format("{:.{}g}", x, digits);
}

std::string grouped(std::int64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t i = text.size(); i > 3 + (n < 0 ? 1U : 0U); i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

std::string counted(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string format_bytes(double bytes) {
  constexpr std::array<std::string_view, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string format_duration(double seconds) {
  const auto whole = std::lround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace thimble
