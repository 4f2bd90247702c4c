#include "program/cli/text/heat_map.h"

#include <fmt/color.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

constexpr std::size_t kMaxName = 8, kMaxCell = 6;

using Rgb = std::array<double, 3>;
using Scale = std::array<Rgb, 5>;

// --scale-0 to --scale-4 of src/inspect/report/page/page.css, for a light and for a dark background.
constexpr Scale kLight = {
    {{0xff, 0xff, 0xff}, {0xb5, 0xd4, 0xec}, {0x5f, 0xa5, 0xd3}, {0x20, 0x69, 0xae}, {0x08, 0x30, 0x6b}}};
constexpr Scale kDark = {
    {{0x15, 0x1b, 0x23}, {0x1a, 0x3d, 0x62}, {0x2a, 0x6d, 0xa6}, {0x64, 0xa9, 0xde}, {0xd6, 0xec, 0xff}}};

// Some terminals set COLORFGBG, which ends with the background color: 7 and 15 are light.
const Scale& scale() {
  const char* variable = std::getenv("COLORFGBG");
  const std::string_view colors = variable == nullptr ? "" : variable;
  const std::string_view background = colors.substr(colors.rfind(';') + 1);
  return background == "7" || background == "15" ? kLight : kDark;
}

// Interpolates linearly between the colors of the scale.
Rgb color_of(double value) {
  const Scale& stops = scale();
  const double at = value * (stops.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  Rgb color;
  for (std::size_t c = 0; c < color.size(); ++c)
    color[c] =
        std::round(stops[low][c] + (at - static_cast<double>(low)) * (stops[low + 1][c] - stops[low][c]));
  return color;
}

// Returns the text on a background.
std::string on_color(const Rgb& color, std::string_view text) {
  return fmt::format("\033[48;2;{};{};{}m{}\033[0m", color[0], color[1], color[2], text);
}

std::string cell(double value, std::size_t width, Colors colors, bool marked = false) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  if (std::isnan(value)) return std::string(width, '?');
  value = std::clamp(value, 0.0, 1.0);
  if (colors == Colors::none) {
    std::string shades(width, kShades[static_cast<std::size_t>(std::lround(value * 9))]);
    if (marked && width > 1) shades.back() = '\'';
    return shades;
  }
  return on_color(color_of(value), fmt::format("{:>{}}", marked ? "'" : "", width));
}

// Returns the i-th character from the end of a text that is padded with spaces on the left.
std::string_view from_end(const std::vector<std::string_view>& characters, std::size_t i) {
  return i < characters.size() ? characters[characters.size() - 1 - i] : " ";
}

std::string without_trailing_spaces(std::string line) { return line.erase(line.find_last_not_of(' ') + 1); }

// Returns the width of a line, whose color sequences take no columns.
std::size_t picture_width(std::string_view line) {
  std::size_t width = 0;
  while (!line.empty()) {
    const std::size_t escape = std::min(line.find('\033'), line.size());
    width += display_width(line.substr(0, escape));
    line.remove_prefix(escape);
    if (!line.empty()) line.remove_prefix(line.find('m') + 1);
  }
  return width;
}

std::size_t picture_width(const Picture& picture) {
  std::size_t width = 0;
  for (const std::string& line : picture) width = std::max(width, picture_width(line));
  return width;
}

// Returns the names of columns of a width: side by side if they fit, otherwise vertical.
Picture column_names(const std::vector<std::string>& names, std::size_t widest, std::size_t width,
                     std::size_t indent) {
  const bool flat = widest < width;
  std::vector<std::vector<std::string_view>> letters;
  std::size_t height = 1;
  for (const std::string& name : names) {
    letters.push_back(flat ? std::vector<std::string_view>{name} : characters_of(name));
    height = std::max(height, letters.back().size());
  }
  Picture lines;
  for (std::size_t row = height; row > 0; --row) {
    std::string line(indent, ' ');
    for (const auto& name : letters) line += padded_right(from_end(name, row - 1), width);
    lines.push_back(without_trailing_spaces(line));
  }
  return lines;
}

std::vector<std::string> labels(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) out.push_back(truncated(name, kMaxName));
  return out;
}

// Returns the largest width of a label.
std::size_t widest(const std::vector<std::string>& labels) {
  std::size_t width = 1;
  for (const std::string& label : labels) width = std::max(width, display_width(label));
  return width;
}

// Returns the largest width of a character.
std::size_t widest_character(const std::vector<std::string>& labels) {
  std::size_t width = 1;
  for (const std::string& label : labels)
    for (const std::string_view character : characters_of(label))
      width = std::max(width, display_width(character));
  return width;
}

Picture rows_of(std::span<const double> values, const std::vector<std::string>& labels, std::size_t width,
                Colors colors, std::span<const char> marked = {}) {
  const std::size_t columns = values.size() / labels.size(), side = widest(labels);
  Picture picture;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    std::string line = padded_left(labels[i], side) + ' ';
    for (std::size_t at = i * columns; at < (i + 1) * columns; ++at)
      line += cell(values[at], width, colors, !marked.empty() && marked[at] != 0);
    picture.push_back(without_trailing_spaces(line));
  }
  return picture;
}

// Returns the matrix with the largest entry of every `shared` rows and columns; it is marked where all of them are.
NumberedMatrix pooled(const NumberedMatrix& matrix, std::int64_t shared) {
  const std::int64_t rows = std::ssize(matrix.values) / matrix.columns,
                     side = (matrix.columns - 1) / shared + 1;
  const auto cells = static_cast<std::size_t>(((rows - 1) / shared + 1) * side);
  NumberedMatrix out{matrix.title, std::vector<double>(cells, std::nan("")), side,
                     std::vector<char>(cells, 1)};
  for (std::int64_t at = 0; at < std::ssize(matrix.values); ++at) {
    const auto to =
        static_cast<std::size_t>(at / matrix.columns / shared * side + at % matrix.columns / shared);
    const auto from = static_cast<std::size_t>(at);
    out.values[to] = std::fmax(out.values[to], matrix.values[from]);
    if (!std::isnan(matrix.values[from])) out.marked[to] &= matrix.marked[from];
  }
  return out;
}

// Draws two rows in a line: the lower half of a character has its own color.
Picture half_blocks(const NumberedMatrix& matrix, const std::vector<std::string>& labels) {
  const auto columns = static_cast<std::size_t>(matrix.columns);
  const auto color_at = [&](std::size_t at) {
    constexpr Rgb kGray = {0x80, 0x80, 0x80};
    return std::isnan(matrix.values[at]) || matrix.marked[at] != 0 ? kGray : color_of(matrix.values[at]);
  };
  Picture picture;
  for (std::size_t row = 0; row < labels.size(); row += 2) {
    std::string line = padded_left(labels[row], widest(labels)) + ' ';
    for (std::size_t at = row * columns; at < (row + 1) * columns; ++at) {
      const Rgb upper = color_at(at);
      if (row + 1 < labels.size()) {
        const Rgb lower = color_at(at + columns);
        line += on_color(upper, fmt::format("\033[38;2;{};{};{}m▄", lower[0], lower[1], lower[2]));
      } else {  // below is the background, as fore- and background are exchanged
        line += fmt::format("\033[38;2;{};{};{}m\033[7m▄\033[0m", upper[0], upper[1], upper[2]);
      }
    }
    picture.push_back(line);
  }
  return picture;
}

// Draws a matrix, of which every row stands for `shared` rows, below its title.
Picture numbered_map(const NumberedMatrix& matrix, std::int64_t shared, Colors colors, std::size_t cell) {
  std::vector<std::string> labels;
  for (std::int64_t row = 0; row < std::ssize(matrix.values) / matrix.columns; ++row)
    labels.push_back(std::to_string(row * shared));
  Picture picture = colors == Colors::none ? rows_of(matrix.values, labels, cell, colors, matrix.marked)
                                           : half_blocks(matrix, labels);
  picture.insert(picture.begin(), matrix.title);
  return picture;
}

}  // namespace

DrawnMaps draw_maps(std::span<const NumberedMatrix> matrices, Colors colors, std::size_t width) {
  const std::size_t lines = kMapLines * ((matrices.size() + 3) / 4);
  std::int64_t longest = 1;
  for (const NumberedMatrix& matrix : matrices)
    longest = std::max({longest, matrix.columns, std::ssize(matrix.values) / matrix.columns});
  for (std::int64_t shared = 1;; ++shared)
    for (std::size_t cell = colors == Colors::none ? 2 : 1; cell > 0; --cell) {
      std::vector<Picture> pictures;
      for (const NumberedMatrix& matrix : matrices)
        pictures.push_back(numbered_map(pooled(matrix, shared), shared, colors, cell));
      const bool fits = std::ranges::all_of(
          pictures, [&](const Picture& picture) { return picture_width(picture) <= width; });
      const auto height = [](const std::string& text) { return std::ranges::count(text, '\n'); };
      const std::string text =
          std::ranges::min(side_by_side(pictures, width), side_by_side(pictures, width, 1), {}, height);
      if ((fits && std::cmp_less_equal(height(text), lines)) || shared == longest) return {text, shared};
    }
}

Picture heat_map(std::span<const double> values, const std::vector<std::string>& rows,
                 const std::vector<std::string>& columns, Colors colors, std::size_t width) {
  const std::vector<std::string> row_labels = labels(rows), column_labels = labels(columns);
  const std::size_t side = widest(row_labels), top = widest(column_labels);
  const std::size_t room = (std::max(width, side + 1) - side - 1) / columns.size();
  if (room < widest_character(column_labels)) return {};
  const std::size_t cells = std::min({room, top + 1, kMaxCell});
  Picture picture = column_names(column_labels, top, cells, side + 1);
  for (std::string& line : rows_of(values, row_labels, cells, colors)) picture.push_back(std::move(line));
  return picture;
}

std::string side_by_side(const std::vector<Picture>& pictures, std::size_t width, std::size_t gap) {
  std::string out;
  for (std::size_t first = 0, last = 0; first < pictures.size(); first = last) {
    std::size_t used = 0, height = 0;
    std::vector<std::size_t> starts;
    for (; last < pictures.size(); ++last) {
      const std::size_t start = last == first ? 0 : used + gap, end = start + picture_width(pictures[last]);
      if (last > first && end > width) break;
      starts.push_back(start);
      used = end;
      height = std::max(height, pictures[last].size());
    }
    for (std::size_t row = 0; row < height; ++row) {
      std::string line;
      for (std::size_t k = first; k < last; ++k) {
        if (row >= pictures[k].size()) continue;
        line.append(starts[k - first] - picture_width(line), ' ').append(pictures[k][row]);
      }
      out += (row == 0 ? "\n" : "") + without_trailing_spaces(line) + '\n';
    }
  }
  return out;
}

std::string shaded(std::string_view text, double value, Colors colors) {
  if (colors == Colors::none) return std::string(text);
  const Rgb color = color_of(value);
  const bool is_bright =
      color[0] + 2 * color[1] + color[2] > 4 * 0x88;  // the text is black on it, or else white
  return on_color(color, fmt::format("\033[{}m{}", is_bright ? 30 : 97, text));
}

std::string legend(Colors colors) {
  if (colors == Colors::none) return "blank is 0, @ is 1";
  std::string ramp;
  for (int k = 0; k <= 10; ++k) ramp += cell(0.1 * k, 1, colors);
  return "0 " + ramp + " 1";
}

}  // namespace thimble::cli
