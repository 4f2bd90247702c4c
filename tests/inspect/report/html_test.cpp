#include "thimble/inspect/html.h"

#include <limits>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/inspect.h"
#include "thimble/train/json.h"

using namespace thimble;

namespace {

const std::vector<double> kMap{1, 0, 0.25, 0.75};

// Returns a sequence of the first tokens in which every query has the attention `map`.
ForwardTrace trace_of(std::int32_t length, const std::vector<double>& map) {
  ForwardTrace trace;
  for (std::int32_t t = 0; t < length; ++t) trace.tokens.push_back(t % 2);
  trace.predictions = trace.tokens;
  trace.attention = map;
  return trace;
}

DoubleMatrix matrix_of(const std::vector<double>& values) {
  DoubleMatrix matrix(2, 2);
  matrix.values = values;
  return matrix;
}

// Two tokens, one head, one example.
InspectReport small_report() {
  InspectReport report;
  report.config.task.name = "reverse";
  report.config.model.layers = report.config.model.heads = 1;
  report.tokens = {"a", "b"};
  report.length = 2;
  HeadReport& head = report.heads.emplace_back();
  head.effects.importance.raw = 0.1234567890123456;
  head.mean_weights.from_start = kMap;
  report.mean_counts = {{40, 40, 40, 40}};
  head.circuits.ov_tokens = matrix_of({-2, 0, 1, 2});
  report.rollout.from_start = kMap;
  report.examples = {trace_of(2, kMap)};
  return report;
}

// Returns the report inside the page.
Json embedded(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"report\">";
  const std::size_t from = page.find(open) + open.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

}  // namespace

TEST_CASE("a page packs maps and keeps other numbers") {
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

TEST_CASE("a page has the counts of means, and 0 only where they are 0") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  InspectReport report = small_report();
  report.mean_counts = {{70000, 3, 3, 0}};
  report.heads[0].mean_weights = {{1, 0, 0.25, nan}, {nan, 0, 0.25, 0.75}};
  report.rollout = report.heads[0].mean_weights;
  const Json page = embedded(html_page(report));
  CHECK(page["mean_counts"][0] ==
        Json({{"shape", {2, 2}}, {"bytes", 4}, {"data", "cBEBAAMAAAADAAAAAAAAAA=="}}));
  const Json& head = page["heads"][0];
  CHECK(head["mean_weights"]["data"] == "//8AAABAAAA=");
  CHECK(head["mean_weights_from_end"]["data"] == "AAAAAABA/78=");
  CHECK(page["rollout_from_end"] == head["mean_weights_from_end"]);
  const Json json = to_json(report);
  CHECK(json["mean_counts"] == Json({{{70000, 3}, {3, 0}}}));
  CHECK(json["heads"][0]["mean_weights"][1][1].is_null());
  CHECK(json["heads"][0]["mean_weights_from_end"][0][0].is_null());
  CHECK(json["rollout_from_end"][0][0].is_null());
  report.mean_counts[0][3] = 1;  // a mean that must be known
  CHECK_THROWS_AS(html_page(report), NumericError);
}

TEST_CASE("the user's own sequence is the first example of a page") {
  ForwardTrace own = trace_of(1, {1});
  own.tokens = {1};
  const Json examples = embedded(html_page(small_report(), &own))["examples"];
  REQUIRE(examples.size() == 2);
  CHECK(examples[0]["own"] == true);
  CHECK(examples[0]["tokens"] == Json({"b"}));
  CHECK(examples[0]["attention"][0]["data"] == "//8=");
  CHECK(examples[1]["tokens"] == Json({"a", "b"}));
  CHECK(!examples[1].contains("own"));
}

TEST_CASE("the attention of each layer of an example is packed by itself") {
  InspectReport report = small_report();
  report.config.model.layers = 2;
  report.mean_counts.push_back(report.mean_counts[0]);
  report.examples = {trace_of(1, {1, 0.25})};
  const Json attention = embedded(html_page(report))["examples"][0]["attention"];
  REQUIRE(attention.size() == 2);
  CHECK(attention[0]["data"] == "//8=");
  CHECK(attention[1]["data"] == "AEA=");
  CHECK(attention[1]["shape"] == Json({1, 1, 1}));
}

TEST_CASE("many examples are packed in one byte a weight") {
  InspectReport report = small_report();
  const ForwardTrace trace = trace_of(32, std::vector<double>(1024, 1.0 / 32));
  report.examples.assign(1000, trace);
  const Json attention = embedded(html_page(report))["examples"][1]["attention"][0];
  CHECK(attention["bytes"] == 1);
  CHECK(attention["data"].get<std::string>().size() == 1368);
}

TEST_CASE("tokens cannot leave the script element") {
  InspectReport report = small_report();
  const std::vector<std::string> tokens = {"</script><script>", "<!--", "a&b", "\u2028\u2029", "\"\\", "é"};
  report.tokens = tokens;
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

TEST_CASE("a page refuses invalid weights, and matrices that are not finite") {
  const auto with = [](double weight) {
    InspectReport report = small_report();
    report.rollout.from_start[2] = weight;
    return report;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-0.1, 1.1, nan}) CHECK_THROWS_AS(html_page(with(bad)), NumericError);
  CHECK_NOTHROW(html_page(with(1.000001)));
  InspectReport report = small_report();
  report.heads[0].circuits.ov_tokens.values[0] = nan;
  CHECK_THROWS_AS(html_page(report), NumericError);
  report = small_report();
  report.heads[0].mean_weights.from_start[1] = -1;
  CHECK_THROWS_AS(html_page(report), NumericError);
  report = small_report();
  report.examples[0].attention[3] = 2;
  CHECK_THROWS_AS(html_page(report), NumericError);
}

TEST_CASE("checkpoints on a page are as many as fit into 2 MiB, with the first and the last") {
  const auto series_of = [](std::int32_t length) {
    InspectReport report = small_report();
    const std::vector<double> uniform(static_cast<std::size_t>(length) * static_cast<std::size_t>(length),
                                      1.0 / length);
    for (std::int64_t step = 0; step < 9; ++step) {
      SeriesStep& entry = report.series.emplace_back();
      entry.snapshot.step = step;
      entry.examples = {trace_of(length, uniform), trace_of(length, uniform)};
    }
    return embedded(html_page(report))["series"];
  };
  const auto steps_of = [](const Json& series) {
    std::vector<std::int64_t> steps;
    for (const Json& step : series["steps"]) steps.push_back(step["step"]);
    return steps;
  };
  const Json small = series_of(2), large = series_of(600);
  CHECK(steps_of(small) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(small["examples"].size() == 2);
  CHECK(small["steps"][8]["attention"].size() == 2);
  CHECK(small["steps"][0]["attention"][1][0]["shape"] == Json({1, 2, 2}));
  CHECK(steps_of(large) == std::vector<std::int64_t>{0, 2, 5, 8});
  CHECK(large["checkpoints"] == 9);
  CHECK(large["examples"].size() == 1);
  CHECK(json_text(large).size() < (2 << 20) + 20000);
}

TEST_CASE("a page holds the results of patching beside the report") {
  const Json patching{{"pairs", 3}};
  const Json report = embedded(html_page(small_report(), nullptr, {{"patching", patching}}));
  CHECK(report["patching"] == patching);
  CHECK(report["heads"].size() == 1);
  CHECK_FALSE(embedded(html_page(small_report())).contains("patching"));
}
