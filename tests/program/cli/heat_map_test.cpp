#include "program/cli/text/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "train/files/text/width.h"

using namespace thimble;
using cli::Colors;
using cli::NumberedMatrix;
using cli::Picture;

namespace {

const double kNone = std::nan("");

// Returns the lines of maps without colors.
std::string plain(const std::vector<NumberedMatrix>& maps, std::size_t width = 80) {
  return cli::draw_maps(maps, Colors::none, width).text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Returns a matrix with ones on the diagonal.
NumberedMatrix diagonal(std::int64_t size) {
  NumberedMatrix out{"head", std::vector<double>(static_cast<std::size_t>(size * size)), size,
                     std::vector<char>(static_cast<std::size_t>(size * size))};
  for (std::int64_t i = 0; i < size; ++i) out.values[static_cast<std::size_t>(i * (size + 1))] = 1;
  return out;
}

}  // namespace

TEST_CASE("a map has a title and numbered rows, with two characters an entry where there is room", "[cli]") {
  const NumberedMatrix map{"title", {0, 0.5, 1, 0.12, kNone, 2}, 3, {0, 0, 0, 0, 0, 0}};
  CHECK(plain({map}) == "\ntitle\n0   ++@@\n1 ..??@@\n");
  CHECK(plain({map}, 7) == "\ntitle\n0  +@\n1 .?@\n");
  CHECK(plain({map, map}) == "\ntitle      title\n0   ++@@   0   ++@@\n1 ..??@@   1 ..??@@\n");
}

TEST_CASE("marked entries of a map end in an apostrophe where there is room", "[cli]") {
  const NumberedMatrix map{"t", {0, 1, 1, kNone}, 2, {0, 1, 0, 0}};
  CHECK(plain({map}) == "\nt\n0   @'\n1 @@??\n");
  CHECK(plain({map}, 4) == "\nt\n0  @\n1 @?\n");
}

TEST_CASE("in colors two rows of a map share a line, and what is marked or missing is gray", "[cli]") {
  const NumberedMatrix map{"t", {0, 1, 1, kNone, 1, 0}, 2, {0, 1, 0, 0, 0, 0}};
  const auto both = [](std::string_view upper, std::string_view lower) {
    return fmt::format("\033[48;2;{}m\033[38;2;{}m▄\033[0m", upper, lower);
  };
  const auto last = [](std::string_view upper) { return fmt::format("\033[38;2;{}m\033[7m▄\033[0m", upper); };
  const std::string_view none = "21;27;35", one = "214;236;255", gray = "128;128;128";
  CHECK(cli::draw_maps(std::vector{map}, Colors::all, 80).text ==
        "\nt\n0 " + both(none, one) + both(gray, gray) + "\n2 " + last(one) + last(none) + "\n");
}

TEST_CASE("maps take at most 24 lines for every four, in any width", "[cli]") {
  for (const Colors colors : {Colors::none, Colors::all})
    for (const std::size_t width : {40, 60, 80, 120})
      for (const std::int64_t size : {1, 2, 10, 31, 64, 257})
        for (const std::size_t heads : {1, 4, 9}) {
          CAPTURE(width, size, heads);
          const auto [text, shared] =
              cli::draw_maps(std::vector<NumberedMatrix>(heads, diagonal(size)), colors, width);
          CHECK(static_cast<std::size_t>(std::ranges::count(text, '\n')) <= 24 * ((heads + 3) / 4));
          if (size <= 10) CHECK(shared == 1);
          if (size == 64 && heads == 4 && width == 80) CHECK(shared > 1);
          if (colors == Colors::all) continue;
          // The diagonal is still there, and nothing else.
          const std::int64_t rows = (size - 1) / shared + 1, drawn = std::ranges::count(text, '@');
          CHECK((drawn == static_cast<std::int64_t>(heads) * rows ||
                 drawn == 2 * static_cast<std::int64_t>(heads) * rows));
          for (const std::string& line : lines_of(text)) CHECK(display_width(line) <= width);
        }
}

TEST_CASE("a cell that several rows and columns share shows the largest, and is marked where all are",
          "[cli]") {
  NumberedMatrix map = diagonal(60);
  map.values[1] = kNone;
  map.marked.assign(map.marked.size(), 1);
  map.marked[0] = 0;
  const auto [text, shared] = cli::draw_maps(std::vector{map}, Colors::none, 80);
  CHECK(shared == 3);
  const std::vector<std::string> lines = lines_of(text);
  CHECK(lines[2].starts_with(" 0 @@"));  // one of its entries is not marked
  CHECK(lines[3].starts_with(" 3  '@'"));
}

TEST_CASE("a heat map has names at its rows and above its columns", "[cli]") {
  const std::vector<double> values{0, 1, 1, 0};
  CHECK(cli::heat_map(values, {"the", "dog"}, {"le", "chien"}, Colors::none, 80) ==
        Picture{"    le    chien", "the       @@@@@@", "dog @@@@@@"});
  // Names that do not fit side by side are vertical.
  const std::vector<std::string> names(20, "abc");
  const Picture narrow = cli::heat_map(std::vector<double>(20, 1.0), {"x"}, names, Colors::none, 60);
  REQUIRE(narrow.size() == 4);
  CHECK(narrow[3] == "x " + std::string(40, '@'));
  const Picture wide = cli::heat_map(std::vector<double>(20, 1.0), {"x"}, names, Colors::none, 120);
  REQUIRE(wide.size() == 2);
  CHECK(wide[1] == "x " + std::string(80, '@'));
}

TEST_CASE("a text stands on the shade of its value, in black or white", "[cli]") {
  CHECK(cli::shaded("the", 0.5, Colors::none) == "the");
  CHECK(cli::shaded("the", 0, Colors::all) == "\033[48;2;21;27;35m\033[97mthe\033[0m");
  CHECK(cli::shaded("the", 1, Colors::all) == "\033[48;2;214;236;255m\033[30mthe\033[0m");
}
