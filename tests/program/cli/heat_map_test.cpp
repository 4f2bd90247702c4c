#include "program/cli/text/heat_map.h"

#include <string>
#include <vector>

#include "catch.h"
#include "train/files/text/width.h"

using namespace thimble;
using cli::Colors;
using cli::Picture;

namespace {

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t start = 0, end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    widest = std::max(widest, display_width(text.substr(start, end - start)));
  return widest;
}

}  // namespace

TEST_CASE("a heat map draws an entry in two columns, or in one where two do not fit", "[cli]") {
  const std::vector<double> values{0, 0.5, 1, 0.12, std::nan(""), 2};
  CHECK(cli::heat_map(values, 3, Colors::none, 80) == Picture{"0   ++@@", "1 ..??@@"});
  const std::vector<double> wide(2 * 57, 1.0);
  CHECK(cli::heat_map(wide, 57, Colors::none, 120)[1] == "1 " + std::string(2 * 57, '@'));
  CHECK(cli::heat_map(wide, 57, Colors::none, 80)[1] == "1 " + std::string(57, '@'));
  CHECK(cli::heat_map(wide, 57, Colors::none, 60)[1] == "1 " + std::string(57, '@'));
  CHECK(cli::heat_map(std::vector<double>(2 * 60, 1.0), 60, Colors::none, 60).empty());
}

TEST_CASE("marked entries of a heat map end in an apostrophe where there is room") {
  const std::vector<double> values{0, 1, 1, std::nan("")};
  const std::vector<char> marked{0, 1, 0, 0};
  CHECK(cli::heat_map(values, 2, Colors::none, 80, marked) == Picture{"0   @'", "1 @@??"});
  CHECK(cli::heat_map(values, 2, Colors::none, 4, marked) == Picture{"0  @", "1 @?"});
  for (const std::size_t width : {80, 4})
    CHECK(cli::heat_map(values, 2, Colors::all, width, marked)[0].ends_with("'\033[0m"));
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

TEST_CASE("pictures are arranged side by side in the width of the terminal", "[cli]") {
  const std::vector<Picture> pictures(5, Picture{"title", std::string(25, '@')});
  for (const std::size_t width : {60, 80, 120}) {
    CAPTURE(width);
    const std::string text = cli::side_by_side(pictures, width);
    const std::size_t in_row = width == 60 ? 2 : width == 80 ? 2 : 4;
    CHECK(widest_line(text) == in_row * 25 + (in_row - 1) * 3);
    CHECK(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) ==
          3 * ((5 + in_row - 1) / in_row));
  }
}

TEST_CASE("a text stands on the shade of its value, in black or white", "[cli]") {
  CHECK(cli::shaded("the", 0.5, Colors::none) == "the");
  CHECK(cli::shaded("the", 0, Colors::all) == "\033[48;2;21;27;35m\033[97mthe\033[0m");
  CHECK(cli::shaded("the", 1, Colors::all) == "\033[48;2;214;236;255m\033[30mthe\033[0m");
}

TEST_CASE("colors take no columns", "[cli]") {
  const std::vector<double> values{0, 1};
  const Picture picture = cli::heat_map(values, 2, Colors::all, 80);
  REQUIRE(picture.size() == 1);
  CHECK(picture[0].starts_with("0 \033[48;2;"));
  const std::string row = cli::side_by_side({picture, picture}, 60);
  CHECK(row.find("\033[0m   0 \033[48") != std::string::npos);
  CHECK(cli::legend(Colors::none) == "blank is 0, @ is 1");
}
