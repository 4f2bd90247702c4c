#include "cli/heat_map.h"

#include <fmt/color.h>

#include <algorithm>
#include <cmath>

#include "thimble/core/text.h"

namespace thimble::cli {

namespace {

constexpr std::size_t kWidth = 80, kLongestName = 8, kWidestCell = 6;

std::string cell(double value, std::size_t width, bool colour) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  if (std::isnan(value)) return std::string(width, '?');
  value = std::clamp(value, 0.0, 1.0);
  if (!colour) return std::string(width, kShades[static_cast<std::size_t>(std::lround(value * 9))]);
  // Lightness follows the weight: dark is 0 and yellow is 1, in the order of the viridis palette.
  const auto channel = [&](double low, double middle, double high) {
    const double x =
        value < 0.5 ? low + (middle - low) * 2 * value : middle + (high - middle) * (2 * value - 1);
    return static_cast<std::uint8_t>(std::lround(x));
  };
  const auto shade = fmt::rgb(channel(68, 33, 253), channel(1, 145, 231), channel(84, 140, 37));
  return fmt::format(fmt::bg(shade), "{}", std::string(width, ' '));
}

// The i-th character from the end of a text that is padded with spaces in front.
std::string_view from_end(std::string_view text, std::size_t i) {
  const std::size_t size = characters(text);
  if (i >= size) return " ";
  for (std::size_t skip = size - 1 - i; skip > 0; --skip) text.remove_prefix(character_size(text));
  return text.substr(0, character_size(text));
}

std::string without_trailing_spaces(std::string line) { return line.erase(line.find_last_not_of(' ') + 1); }

// Names above columns of that width: side by side if they fit, or else from top to bottom.
std::string column_names(const std::vector<std::string>& names, std::size_t widest, std::size_t width,
                         std::size_t indent) {
  std::string lines;
  const bool flat = widest < width;
  for (std::size_t row = flat ? 1 : widest; row > 0; --row) {
    std::string line(indent, ' ');
    for (const std::string& name : names)
      line += fmt::format("{:<{}}", flat ? std::string_view(name) : from_end(name, row - 1), width);
    lines += without_trailing_spaces(line) + '\n';
  }
  return lines;
}

std::vector<std::string> labels(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) out.push_back(shortened(name, kLongestName));
  return out;
}

std::size_t widest(const std::vector<std::string>& labels) {
  std::size_t width = 1;
  for (const std::string& label : labels) width = std::max(width, characters(label));
  return width;
}

}  // namespace

std::string heat_map(const std::vector<double>& values, std::int64_t columns, bool colour) {
  const std::size_t width = 2 * columns <= 74 ? 2 : 1;
  std::string picture;
  for (std::int64_t i = 0; i < std::ssize(values) / columns; ++i) {
    picture += fmt::format("{:>4} ", i);
    for (std::int64_t j = 0; j < columns; ++j)
      picture += cell(values[static_cast<std::size_t>(i * columns + j)], width, colour);
    picture += '\n';
  }
  return picture;
}

std::string heat_map(std::span<const double> values, const std::vector<std::string>& rows,
                     const std::vector<std::string>& columns, bool colour) {
  const std::vector<std::string> row_labels = labels(rows), column_labels = labels(columns);
  const std::size_t side = widest(row_labels), top = widest(column_labels);
  const std::size_t room = (kWidth - side - 1) / columns.size();
  if (room == 0) return "";
  const std::size_t width = std::min({room, top + 1, kWidestCell});
  std::string picture = column_names(column_labels, top, width, side + 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string line = fmt::format("{:>{}} ", row_labels[i], side);
    for (std::size_t j = 0; j < columns.size(); ++j)
      line += cell(values[i * columns.size() + j], width, colour);
    picture += without_trailing_spaces(line) + '\n';
  }
  return picture;
}

std::string_view legend(bool colour) { return colour ? "dark is 0, yellow is 1" : "blank is 0, @ is 1"; }

std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count)
    text.remove_prefix(std::clamp<std::size_t>(character_size(text), 1, text.size()));
  return count;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (characters(text) <= width) return std::string(text);
  std::size_t kept = 0;
  for (std::size_t i = 1; i < width; ++i) kept += character_size(text.substr(kept));
  return std::string(text.substr(0, kept)) + "~";
}

}  // namespace thimble::cli
