#include "train/files/text/width.h"

#include <algorithm>
#include <clocale>
#include <cmath>
#include <cwchar>

#include "train/files/text/text.h"

namespace thimble {

namespace {

// Returns the columns of a character by the tables of the C library for UTF-8, whatever the program's locale.
std::size_t columns(const Character& character) {
  static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 == nullptr || !character.valid) return 1;
  const locale_t before = ::uselocale(utf8);
  const int width = ::wcwidth(static_cast<wchar_t>(character.point));
  ::uselocale(before);
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

// Removes the first character of a text that is not empty, and returns its columns.
std::size_t take(std::string_view& text) {
  const Character character = first_character(text);
  text.remove_prefix(character.bytes.size());
  return columns(character);
}

std::string spaces(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(used < width ? width - used : 0, ' ');
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) width += take(text);
  return width;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    std::string_view rest = text;
    const bool joins = take(rest) == 0 && !out.empty();
    const std::string_view character = text.substr(0, text.size() - rest.size());
    if (joins)
      out.back() = {out.back().data(), out.back().size() + character.size()};
    else
      out.push_back(character);
    text = rest;
  }
  return out;
}

std::string truncated(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::string_view rest = text;
  std::size_t used = 0, kept = 0;
  while (used < width) {
    kept = text.size() - rest.size();
    used += take(rest);
  }
  return std::string(text.substr(0, kept)) + "~";
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  indent = std::min(indent, width / 2);
  std::string out;
  std::size_t column = 0;
  bool started = false;
  for (std::size_t spaces = 0; (spaces = text.find_first_not_of(' ')) != std::string_view::npos;) {
    text.remove_prefix(spaces);
    std::size_t end = text.find(' ');
    if (end != std::string_view::npos && text.substr(end).starts_with(" %")) end = text.find(' ', end + 1);
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(word.size());
    const std::size_t size = display_width(word);
    const bool breaks = started && column + spaces + size > width;
    column = breaks ? indent : column + spaces;
    if (breaks) out += '\n';
    out.append(breaks ? indent : spaces, ' ').append(word);
    column += size;
    started = true;
  }
  return out + '\n';
}

namespace {

// Returns the indent of the lines that continue a long line.
std::size_t hanging_indent(std::string_view line, std::size_t width) {
  const std::size_t start = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", start);
  const std::size_t after = gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
  return after != std::string_view::npos && display_width(line.substr(0, after)) <= width / 3
             ? display_width(line.substr(0, after))
             : start;
}

}  // namespace

std::string reflowed(std::string_view lines, std::size_t width) {
  std::string out;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    if (display_width(line) <= width) {
      out.append(line).append(end == std::string_view::npos ? "" : "\n");
      continue;
    }
    const std::string_view mark = line.starts_with("# ") ? "# " : "";
    line.remove_prefix(mark.size());
    const std::size_t columns_left = width - mark.size();
    std::string rest = wrapped(line, columns_left, hanging_indent(line, columns_left));
    if (end == std::string_view::npos) rest.pop_back();
    for (std::size_t from = 0, to = 0; from < rest.size(); from = to) {
      to = std::min(rest.find('\n', from), rest.size() - 1) + 1;
      out.append(mark).append(rest, from, to - from);
    }
  }
  return out;
}

std::string padded_right(std::string_view text, std::size_t width) {
  return std::string(text) + spaces(text, width);
}

std::string padded_left(std::string_view text, std::size_t width) {
  return spaces(text, width) + std::string(text);
}

std::string aligned(std::span<const std::vector<std::string>> rows, std::size_t title, std::size_t width,
                    std::string_view between) {
  std::string out;
  for (std::size_t first = 1, last = 1; first < rows[0].size(); first = last) {
    std::vector<std::string> lines;
    for (const auto& row : rows) lines.push_back(padded_right(row[0], title));
    for (; last < rows[0].size(); ++last) {
      std::size_t widest = 0;
      for (const auto& row : rows) widest = std::max(widest, display_width(row[last]));
      if (last > first && display_width(lines[0]) + 1 + widest > width) break;
      for (std::size_t r = 0; r < rows.size(); ++r) lines[r] += ' ' + padded_right(rows[r][last], widest);
    }
    if (first > 1) out += between;
    for (std::string& line : lines) out += line.erase(line.find_last_not_of(' ') + 1) + '\n';
  }
  return out;
}

std::string bars(std::span<const double> values, double highest, bool plain) {
  constexpr std::string_view kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::string_view kPlain = "_.:-=+*#";
  std::string line;
  for (const double value : values) {
    const double share = highest > 0 ? value / highest : 0;
    const auto level = static_cast<std::size_t>(std::isfinite(share) ? std::clamp(share * 8, 0.0, 7.0) : 0);
    line += std::isfinite(share) ? plain ? kPlain.substr(level, 1) : kBlocks[level] : " ";
  }
  return line;
}

}  // namespace thimble
