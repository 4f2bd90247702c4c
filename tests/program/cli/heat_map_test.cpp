#include "program/cli/text/heat_map.h"

#include <string>
#include <vector>

#include "catch.h"

using namespace thimble;
using cli::Colors;
using cli::Picture;

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

TEST_CASE("a text stands on the shade of its value, in black or white", "[cli]") {
  CHECK(cli::shaded("the", 0.5, Colors::none) == "the");
  CHECK(cli::shaded("the", 0, Colors::all) == "\033[48;2;21;27;35m\033[97mthe\033[0m");
  CHECK(cli::shaded("the", 1, Colors::all) == "\033[48;2;214;236;255m\033[30mthe\033[0m");
}
