#include "inspect/report/svg.h"
#include "source_directory.h"

#include <fstream>
#include <limits>
#include <sstream>

#include "catch.h"
#include "thimble/engine/error.h"

using namespace thimble;

namespace {

const std::vector<std::string> kTokens = {"a", "b"};

// Returns whether every element is closed in order, and only entities follow an ampersand.
bool well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.starts_with('?') || tag.ends_with('/')) continue;
    const std::string name = tag.substr(0, tag.find(' '));
    if (!name.starts_with('/')) {
      open.push_back(name);
    } else if (open.empty() || "/" + open.back() != name) {
      return false;
    } else {
      open.pop_back();
    }
  }
  for (std::size_t at = xml.find('&'); at != std::string::npos; at = xml.find('&', at + 1)) {
    const std::string name = xml.substr(at, xml.find(';', at) - at);
    if (name != "&amp" && name != "&lt" && name != "&gt" && name != "&quot") return false;
  }
  return open.empty();
}

}  // namespace

TEST_CASE("a drawing has a cell for each weight that is not zero") {
  const std::string svg = head_svg("head 0.0", kTokens, kTokens, {1, 0, 0.25, 0.75});
  CHECK(well_formed(svg));
  CHECK_THAT(svg, ContainsSubstring("<rect x=\"0\" y=\"0\" width=\"14\" height=\"14\" fill=\"#08306b\"/>"));
  CHECK_THAT(svg, ContainsSubstring("<rect x=\"0\" y=\"14\" width=\"14\" height=\"14\" fill=\"#b5d4ec\"/>"));
  CHECK_THAT(svg, ContainsSubstring("<rect x=\"14\" y=\"14\" width=\"14\" height=\"14\" fill=\"#2069ae\"/>"));
  CHECK_THAT(svg, !ContainsSubstring("<rect x=\"14\" y=\"0\""));
  CHECK_THAT(svg, !ContainsSubstring("url(#masked)"));
  CHECK(svg == head_svg("head 0.0", kTokens, kTokens, {1, 0, 0.25, 0.75}));
}

TEST_CASE("a drawing hatches masked keys") {
  const double masked = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = head_svg("causal", kTokens, kTokens, {1, masked, 0.5, 0.5});
  CHECK_THAT(svg,
             ContainsSubstring("<rect x=\"14\" y=\"0\" width=\"14\" height=\"14\" fill=\"url(#masked)\"/>"));
  CHECK_THAT(svg, ContainsSubstring("hatched: masked"));
}

TEST_CASE("a drawing of means marks cells of few sequences, and of none") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::int64_t> counts = {30, 29, 1, 0};
  const std::string svg = head_svg("means", kTokens, kTokens, {1, 0, 0.5, none}, counts);
  CHECK(well_formed(svg));
  CHECK_THAT(svg, ContainsSubstring(", hatched: no sequence, dot: fewer than 30 sequences</text>"));
  CHECK_THAT(svg, ContainsSubstring("<circle cx=\"21\" cy=\"7\"") &&
                      ContainsSubstring("<circle cx=\"7\" cy=\"21\""));
  CHECK_THAT(svg, !ContainsSubstring("cx=\"7\" cy=\"7\"") && !ContainsSubstring("cx=\"21\" cy=\"21\""));
  const std::vector<std::int64_t> enough(4, 30);
  CHECK(head_svg("means", kTokens, kTokens, {1, 0, 0.5, 0.5}, enough) ==
        head_svg("means", kTokens, kTokens, {1, 0, 0.5, 0.5}));
}

TEST_CASE("a drawing is wide enough for its title") {
  const auto width = [](const std::string& title) {
    const std::string svg = head_svg(title, kTokens, kTokens, {1, 0, 0.5, 0.5});
    return std::stod(svg.substr(svg.find("width=\"") + 7));
  };
  CHECK(width("short") < 300);
  CHECK(width(std::string(100, 'm')) > 100 * 0.6 * 13);  // a character is 0.6 of the font's 13 pixels wide
}

TEST_CASE("labels of a drawing are escaped") {
  const std::vector<std::string> odd = {"</text>", "a&b<c", "\x01", "\xff", "\xEF\xBF\xBF", "\"'é"};
  const std::string svg = head_svg("<script>&", odd, {"k"}, std::vector<double>(odd.size(), 0.5));
  CHECK(well_formed(svg));
  CHECK_THAT(svg, ContainsSubstring(">&lt;/text&gt;</text>") && ContainsSubstring(">a&amp;b&lt;c</text>") &&
                      ContainsSubstring(">&quot;'é</text>"));
  CHECK_THAT(svg, ContainsSubstring("<title>&lt;script&gt;&amp;</title>"));
  for (const char* bad : {"\x01", "\xff", "\xEF\xBF\xBF"}) CHECK_THAT(svg, !ContainsSubstring(bad));
}

TEST_CASE("the colors of a drawing are those of the page") {
  std::ifstream file(source_directory() + "/src/inspect/report/page/page.css");
  std::stringstream css;
  css << file.rdbuf();
  const std::string svg = head_svg("scale", kTokens, kTokens, {0, 0, 0, 0});
  for (const std::string color : {"#ffffff", "#b5d4ec", "#5fa5d3", "#2069ae", "#08306b"}) {
    CHECK_THAT(svg, ContainsSubstring("stop-color=\"" + color + "\""));
    CHECK_THAT(css.str(), ContainsSubstring(": " + color + ";"));
  }
}

TEST_CASE("a drawing refuses weights of another size or outside [0, 1]") {
  CHECK_THROWS_AS(head_svg("", kTokens, kTokens, {1, 0, 1}), ShapeError);
  CHECK_THROWS_AS(head_svg("", {}, {}, {}), ShapeError);
  CHECK_THROWS_AS(head_svg("", kTokens, {"a"}, {1.1, 0}), NumericError);
  CHECK_THROWS_AS(head_svg("", kTokens, {"a"}, {-0.1, 0}), NumericError);
}
