#include "thimble/inspect/report/html.h"

#include <limits>

#include "catch.h"
#include "thimble/core/error.h"
#include "thimble/core/json.h"

using namespace thimble;

namespace {

// Two tokens, one head, one example of `examples` times the same weights.
Json small_report(int examples = 1) {
  const Json map = {{1.0, 0.0}, {0.25, 0.75}};
  Json report = {{"task", "reverse"},
                 {"heads",
                  {{{"layer", 0},
                    {"head", 0},
                    {"importance", {{"raw", 0.1234567890123456}}},
                    {"mean_weights", map},
                    {"circuits", {{"ov_tokens", {{-2.0, 0.0}, {1.0, 2.0}}}, {"qk_tokens", nullptr}}}}}},
                 {"rollout", map},
                 {"examples", Json::array()}};
  for (int k = 0; k < examples; ++k)
    report["examples"].push_back({{"tokens", {"a", "b"}}, {"attention", {{map}}}});
  return report;
}

// What the page holds as its report.
Json embedded(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"report\">";
  const std::size_t from = page.find(open) + open.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

}  // namespace

TEST_CASE("a page packs maps and leaves other numbers alone") {
  const Json report = embedded(html_page(small_report()));
  const Json& head = report["heads"][0];
  CHECK(head["importance"]["raw"] == 0.1234567890123456);
  // 65535, 0, 16384 and 49151, the low byte first.
  const Json map = {{"shape", {2, 2}}, {"bytes", 2}, {"data", "//8AAABA/78="}};
  CHECK(head["mean_weights"] == map);
  CHECK(report["rollout"] == map);
  CHECK(report["examples"][0]["attention"].size() == 1);
  CHECK(report["examples"][0]["attention"][0]["shape"] == Json({1, 2, 2}));
  CHECK(report["examples"][0]["attention"][0]["data"] == map["data"]);
  CHECK(report["examples"][0]["tokens"] == Json({"a", "b"}));
  // -32767, 0, 16384 and 32767 of 2 / 32767.
  CHECK(head["circuits"]["ov_tokens"] ==
        Json({{"shape", {2, 2}}, {"bytes", 2}, {"data", "AYAAAABA/38="}, {"scale", 2.0}}));
  CHECK(head["circuits"]["qk_tokens"].is_null());
}

TEST_CASE("the user's own sequence is the first example of a page") {
  Json report = small_report();
  report["input"] = {
      {"tokens", {"b", "b", "a"}}, {"predictions", {"a", "a", "b"}}, {"attention", {{{{1.0, 0.0}}}}}};
  const Json examples = embedded(html_page(report))["examples"];
  REQUIRE(examples.size() == 2);
  CHECK(examples[0]["own"] == true);
  CHECK(examples[0]["tokens"] == Json({"b", "b", "a"}));
  CHECK(examples[0]["attention"][0]["data"] == "//8AAA==");
  CHECK(examples[1]["tokens"] == Json({"a", "b"}));
  CHECK(!examples[1].contains("own"));
  CHECK(!embedded(html_page(report)).contains("input"));
}

TEST_CASE("many examples are packed in one byte a weight") {
  Json report = small_report();
  const std::vector<double> row(1000, 0.001);
  report["examples"][0]["attention"] = Json::array({Json::array({Json::array({row})})});
  for (int k = 0; k < 1000; ++k) report["examples"].push_back(report["examples"][0]);
  const Json attention = embedded(html_page(report))["examples"][1]["attention"][0];
  CHECK(attention["bytes"] == 1);
  CHECK(attention["data"].get<std::string>().size() == 1336);
}

TEST_CASE("tokens cannot leave the script element") {
  Json report = small_report();
  const std::vector<std::string> tokens = {"</script><script>", "<!--", "a&b", "\u2028\u2029", "\"\\", "é"};
  report["tokens"] = tokens;
  const std::string page = html_page(report);
  CHECK(embedded(page)["tokens"] == Json(tokens));
  CHECK(page.find("</script><script>") == std::string::npos);
  CHECK(page.find("a&b") == std::string::npos);
  CHECK(page.find("\u2028") == std::string::npos);
  CHECK_THAT(page, ContainsSubstring("\\u003c/script\\u003e") && ContainsSubstring("a\\u0026b") &&
                       ContainsSubstring("\\u2028\\u2029"));
}

TEST_CASE("a page may load nothing and run only its own script") {
  const std::string page = html_page(small_report());
  CHECK_THAT(page, ContainsSubstring("default-src 'none'; style-src 'sha256-"));
  CHECK_THAT(page,
             !ContainsSubstring("unsafe-inline") && !ContainsSubstring("src=\"") && !ContainsSubstring("{{"));
  CHECK(page == html_page(small_report()));
}

TEST_CASE("a page refuses maps that are none") {
  const auto with = [](Json map) {
    Json report = small_report();
    report["rollout"] = std::move(map);
    return report;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-0.1, 1.1, nan}) CHECK_THROWS_AS(html_page(with({{bad, 0.5}})), NumericError);
  CHECK_THROWS_AS(html_page(with({{"half", 0.5}})), NumericError);
  CHECK_THROWS_AS(html_page(with({{0.5, 0.5}, {1.0}})), ShapeError);
  CHECK_THROWS_AS(html_page(with({{0.5}, 0.5})), ShapeError);
  Json report = small_report();
  report["heads"][0]["circuits"]["ov_tokens"] = {{nan}};
  CHECK_THROWS_AS(html_page(report), NumericError);
  CHECK_NOTHROW(html_page(with({{1.000001, 0.0}})));
}
