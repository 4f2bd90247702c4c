// Comparisons of the runs of sweeps, from files made by hand.
#include "thimble/compare/compare.h"

#include "catch.h"
#include "core/temporary_directory.h"
#include "thimble/compare/page.h"
#include "thimble/core/error.h"
#include "thimble/core/file.h"

using namespace thimble;

namespace fs = std::filesystem;

namespace {

// A sweep over model.heads with two seeds each; the last run failed.
struct SweepCase {
  TemporaryDirectory directory;
  Json sweep{{"settings", Json::array()}};

  // task: of the config; file: the hash of a data file, "" for none.
  explicit SweepCase(const std::string& task = "{name: reverse}", const std::string& file = "") {
    int number = 0;
    for (const int heads : {1, 2}) {
      Json setting{{"overrides", {{"train.steps", 20}, {"model.heads", heads}}}, {"runs", Json::array()}};
      for (const int seed : {7, 8}) {
        ++number;
        const double loss = 0.5 * number;
        const Json result{{"steps", 20}, {"validation", {{"loss", loss}, {"accuracy", 1 - loss / 4}}}};
        const fs::path run = directory / "runs" / std::to_string(number);
        fs::create_directories(run);
        write_file(
            run / "config.yaml",
            fmt::format("task: {}\nmodel: {{d_model: 32, heads: {}}}\ntrain: {{seed: {}, steps: 20}}\n", task,
                        heads, seed));
        if (!file.empty())
          write_file(run / "data.json",
                     fmt::format(R"({{"vocabulary":["a"],"longest":{{"input":1,"target":1}},"length":1,)"
                                 R"("source_length":0,"files":[{{"key":"file","path":"/{0}","relative":"",)"
                                 R"("bytes":1,"hash":"{0}"}}]}})",
                                 file));
        if (number < 4) write_file(run / "summary.json", json_text(result));
        write_file(run / "metrics.jsonl",
                   fmt::format("{{\"step\":10,\"split\":\"validation\",\"loss\":{0},\"accuracy\":0.5}}\n"
                               "{{\"step\":20,\"split\":\"validation\",\"loss\":{1},\"accuracy\":0.5}}\n",
                               2 * loss, loss));
        setting["runs"].push_back({{"seed", seed},
                                   {"directory", "elsewhere/runs/" + std::to_string(number)},
                                   {"result", number < 4 ? result : Json()}});
      }
      sweep["settings"].push_back(setting);
    }
    write_file(directory / "sweep.json", json_text(sweep));
  }
  Comparison comparison() const { return compare({directory.path().string()}); }
};

const ComparedValue& value_of(const Comparison& comparison, const std::string& key) {
  return *std::ranges::find(comparison.config, key, &ComparedValue::key);
}

std::string refusal(const std::vector<std::string>& directories) {
  try {
    compare(directories);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the settings of a sweep are compared over their seeds", "[compare]") {
  const Comparison comparison = SweepCase().comparison();
  REQUIRE(comparison.runs.size() == 2);
  CHECK(comparison.runs[0].name == "heads=1");
  CHECK(comparison.runs[0].directories.size() == 2);
  CHECK(comparison.runs[0].failed == 0);
  CHECK(comparison.runs[1].directories.size() == 1);
  CHECK(comparison.runs[1].failed == 1);
  CHECK(comparison.heads.empty());

  const auto loss = std::ranges::find(comparison.results, "/validation/loss", &ComparedResult::metric);
  CHECK(loss->runs[0].median == 0.75);
  CHECK(loss->runs[0].min == 0.5);
  CHECK(loss->runs[0].max == 1);
  CHECK(loss->runs[1].median == 1.5);
  CHECK(loss->is_best == std::vector{true, false});
  const auto accuracy =
      std::ranges::find(comparison.results, "/validation/accuracy", &ComparedResult::metric);
  CHECK(accuracy->is_best == std::vector{true, false});
  const auto steps = std::ranges::find(comparison.results, "/steps", &ComparedResult::metric);
  CHECK(steps->is_best == std::vector{false, false});

  const ComparedCurve& curve = comparison.curves.at(0);
  CHECK(curve.split == "validation");
  REQUIRE(curve.runs[0].size() == 2);
  CHECK(curve.runs[0][0].step == 10);
  CHECK(curve.runs[0][0].values.median == 1.5);
  CHECK(curve.runs[0][1].values.min == 0.5);
  CHECK(curve.runs[1][1].values.count == 1);
}

TEST_CASE("long curves are thinned evenly and end at the last step", "[compare]") {
  const SweepCase sweep;
  const auto points = [&](int steps, std::size_t sweeps) {
    for (int run = 1; run <= 4; ++run) {
      std::string metrics;
      for (int step = 1; step <= steps; ++step)
        metrics += fmt::format("{{\"step\":{0},\"split\":\"validation\",\"loss\":{1},\"accuracy\":0.5}}\n",
                               step, step * run);
      write_file(sweep.directory / "runs" / std::to_string(run) / "metrics.jsonl", metrics);
    }
    const std::vector<std::string> directories(sweeps, sweep.directory.path().string());
    return compare(directories).curves.at(0).runs[0];
  };
  // At most 400 points, of 52 settings 20,000 / 52.
  for (const auto& [steps, sweeps, every] : {std::tuple(400, std::size_t{1}, 1),
                                             {401, std::size_t{1}, 2},
                                             {1000, std::size_t{1}, 3},
                                             {386, std::size_t{26}, 2}}) {
    const std::vector<CurveSpread> curve = points(steps, sweeps);
    CAPTURE(steps, sweeps);
    REQUIRE(std::ssize(curve) == (steps + every - 1) / every);
    for (std::size_t i = 0; i < curve.size(); ++i) {
      const std::int64_t step = steps - every * (std::ssize(curve) - 1 - static_cast<std::int64_t>(i));
      CHECK(curve[i].step == step);
      CHECK(curve[i].values.max == static_cast<double>(2 * step));  // of the second seed
    }
  }
}

TEST_CASE("values that differ between runs are known", "[compare]") {
  const Comparison comparison = SweepCase().comparison();
  CHECK(value_of(comparison, "model.heads").values == std::vector<std::string>{"1", "2"});
  CHECK(value_of(comparison, "model.heads").differs);
  CHECK(value_of(comparison, "train.seed").values == std::vector<std::string>{"7, 8", "7"});
  CHECK_FALSE(value_of(comparison, "model.d_model").differs);
  CHECK(to_json(comparison)["results"][0]["metric"] == "validation.loss");
}

TEST_CASE("data that differ between runs are named, files by their content", "[compare]") {
  const auto differing = [](const SweepCase& first, const SweepCase& second) {
    return compare({first.directory.path().string(), second.directory.path().string()}).data_differs;
  };
  const std::string usual = "{name: reverse}", longer = "{name: reverse, length: 9}";
  CHECK(differing(SweepCase(), SweepCase()).empty());
  CHECK(differing(SweepCase(), SweepCase(longer)) == std::vector<std::string>{"task.length"});
  CHECK(differing(SweepCase(usual, "aa"), SweepCase(usual, "aa")).empty());
  CHECK(differing(SweepCase(usual, "aa"), SweepCase(usual, "bb")) == std::vector<std::string>{"data files"});
  CHECK(differing(SweepCase(usual, "aa"), SweepCase()).empty());  // unknown of the second
  const std::string here = "{name: file, file: /here/a.tsv}", there = "{name: file, file: /there/a.tsv}";
  CHECK(differing(SweepCase(here, "aa"), SweepCase(there, "aa")).empty());
}

TEST_CASE("the same files give the same page", "[compare]") {
  const SweepCase sweep;
  const std::string page = compare_page(sweep.comparison());
  CHECK(page == compare_page(sweep.comparison()));
  CHECK(page.find("<title>thimble compare</title>") != std::string::npos);
  CHECK(page.find("{{") == std::string::npos);
}

TEST_CASE("what is not a run, or a single run, is refused", "[compare]") {
  const SweepCase sweep;
  const std::string empty = (sweep.directory / "empty").string();
  fs::create_directory(empty);
  CHECK(refusal({empty, empty}) == empty + ": not a run: config.yaml or checkpoints is missing");
  CHECK(refusal({empty + "/none", empty}) ==
        empty + "/none: no such run directory; create one with thimble train");
  write_file(fs::path(empty) / "sweep.json", R"({"settings": [], "checksum": "0"})");
  CHECK(refusal({empty}).find("sweep.json: the checksum does not match") != std::string::npos);
  write_file(fs::path(empty) / "sweep.json", "{}");
  CHECK(refusal({empty}).find("sweep.json: invalid: ") != std::string::npos);
  write_file(fs::path(empty) / "sweep.json", R"({"settings": []})");
  CHECK(refusal({empty}) ==
        "compare: 0 runs; requires at least 2, or a sweep with at least 1; give another run directory");
}
