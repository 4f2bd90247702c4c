// Comparisons of the runs of sweeps, from files made by hand.
#include "program/compare/compare.h"

#include "catch.h"
#include "program/compare/page.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/temporary_directory.h"
#include "train/runs/hand_made_run.h"

using namespace thimble;

namespace fs = std::filesystem;

namespace {

// A sweep over model.heads with two seeds each; the last run failed.
struct ComparedSweep {
  TemporaryDirectory directory;
  Json sweep{{"format", "thimble sweep 3"}, {"settings", Json::array()}};

  // task: of the config; file: the hash of a data file, "" for none.
  explicit ComparedSweep(const std::string& task = "{name: reverse}", const std::string& file = "") {
    int number = 0;
    for (const int heads : {1, 2}) {
      Json setting{{"config_hash", ""},
                   {"overrides", {{"train.steps", 20}, {"model.heads", heads}}},
                   {"runs", Json::array()}};
      for (const int seed : {7, 8}) {
        ++number;
        const double loss = 0.5 * number;
        const Json result{{"steps", 20},
                          {"validation", {{"loss", loss}, {"accuracy", 1 - loss / 4}}},
                          {"weights_hash", std::to_string(number)}};
        const Config config = parse_config(
            fmt::format("task: {}\nmodel: {{d_model: 32, heads: {}}}\ntrain: {{seed: {}, steps: 20}}\n", task,
                        heads, seed),
            "config", {}, {.training = false});
        Json record{{"vocabulary", {"a"}},
                    {"longest", {{"input", 1}, {"target", 1}}},
                    {"length", 1},
                    {"source_length", 0},
                    {"files", Json::array()}};
        if (!file.empty())
          record["files"].push_back(
              {{"key", "file"}, {"path", "/" + file}, {"relative", ""}, {"bytes", 1}, {"hash", file}});
        const std::string metrics = fmt::format(
            "{{\"step\":1,\"split\":\"train\",\"loss\":9,\"accuracy\":0}}\n"
            "{{\"step\":10,\"split\":\"validation\",\"loss\":{0},\"accuracy\":0.5}}\n"
            "{{\"step\":20,\"split\":\"validation\",\"loss\":{1},\"accuracy\":0.5}}\n",
            2 * loss, loss);
        const std::string identity = write_hand_made_run(directory / "runs" / std::to_string(number), config,
                                                         record, metrics, number < 4 ? result : Json());
        setting["runs"].push_back({{"seed", seed},
                                   {"directory", "elsewhere/runs/" + std::to_string(number)},
                                   {"run", identity},
                                   {"result", number < 4 ? result : Json()}});
      }
      sweep["settings"].push_back(setting);
    }
    write();
  }
  void write() const { write_file(directory / "sweep.json", json_text(sweep)); }
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
  const Comparison comparison = ComparedSweep().comparison();
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

TEST_CASE("long curves are thinned evenly and end at the last step", "[compare][slow]") {
  const ComparedSweep sweep;
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
  const Comparison comparison = ComparedSweep().comparison();
  CHECK(value_of(comparison, "model.heads").values == std::vector<std::string>{"1", "2"});
  CHECK(value_of(comparison, "model.heads").differs);
  CHECK(value_of(comparison, "train.seed").values == std::vector<std::string>{"7, 8", "7"});
  CHECK_FALSE(value_of(comparison, "model.d_model").differs);
  CHECK(to_json(comparison)["results"][0]["metric"] == "validation.loss");
}

TEST_CASE("data that differ between runs are named, files by their content", "[compare][slow]") {
  const auto differing = [](const ComparedSweep& first, const ComparedSweep& second) {
    return compare({first.directory.path().string(), second.directory.path().string()}).data_differs;
  };
  const std::string usual = "{name: reverse}", longer = "{name: reverse, length: 9}";
  CHECK(differing(ComparedSweep(), ComparedSweep()).empty());
  CHECK(differing(ComparedSweep(), ComparedSweep(longer)) == std::vector<std::string>{"task.length"});
  CHECK(differing(ComparedSweep(usual, "aa"), ComparedSweep(usual, "aa")).empty());
  CHECK(differing(ComparedSweep(usual, "aa"), ComparedSweep(usual, "bb")) ==
        std::vector<std::string>{"data files"});
  CHECK(differing(ComparedSweep(usual, "aa"), ComparedSweep()).empty());  // unknown of the second
  const std::string here = "{name: file, file: /here/a.tsv}", there = "{name: file, file: /there/a.tsv}";
  CHECK(differing(ComparedSweep(here, "aa"), ComparedSweep(there, "aa")).empty());
}

TEST_CASE("the same files give the same page", "[compare]") {
  const ComparedSweep sweep;
  const std::string page = compare_page(sweep.comparison());
  CHECK(page == compare_page(sweep.comparison()));
  CHECK(page.find("<title>thimble compare</title>") != std::string::npos);
  CHECK(page.find("{{") == std::string::npos);
}

TEST_CASE("what is not a run, or a single run, is refused", "[compare]") {
  const ComparedSweep sweep;
  const std::string empty = (sweep.directory / "empty").string();
  fs::create_directory(empty);
  CHECK(refusal({empty, empty}) == empty + ": not a run: it has no data.json");
  CHECK(refusal({empty + "/none", empty}) ==
        empty + "/none: no such run directory; create one with thimble train");
  const auto refused = [&](Json json, const std::string& message) {
    write_file(fs::path(empty) / "sweep.json", json_text(json));
    CHECK(refusal({empty}).find(message) != std::string::npos);
  };
  const std::string remedy =
      "sweep.json: is not what this version writes; the command of the sweep writes it again: thimble sweep FILE --out " +
      empty;
  refused(Json::object(), remedy);
  Json json{{"format", "thimble sweep 3"}, {"settings", Json::array()}};
  refused(json,
          "compare: 0 runs; requires at least 2, or a sweep with at least 1; give another run directory");
  json.erase("settings");
  refused(json, remedy);
  fs::remove(fs::path(empty) / "sweep.json");
  fs::create_directory(fs::path(empty) / "runs");
  CHECK(refusal({empty}) ==
        empty +
            "/sweep.json: is missing; the command of the sweep writes it again: thimble sweep FILE --out " +
            empty + "; where there was no sweep, name the runs: thimble compare RUN RUN");
}

TEST_CASE("a run of a sweep that was trained further, or has lost its summary, is shown with a mark",
          "[compare]") {
  ComparedSweep sweep;
  sweep.sweep["settings"][0]["runs"][0]["result"]["weights_hash"] = "before";
  sweep.write();
  fs::remove(sweep.directory / "runs" / "2" / "summary.json");
  const Comparison comparison = sweep.comparison();
  CHECK(comparison.runs[0].directories.size() == 2);
  REQUIRE(comparison.remarks.size() == 2);
  CHECK(comparison.remarks[0] == (sweep.directory / "runs" / "1").string() +
                                     ": was trained further, to step 20, after the sweep had ended it");
  CHECK(comparison.remarks[1] == (sweep.directory / "runs" / "2").string() +
                                     ": its result is that of sweep.json, as it has no summary.json");
  CHECK(std::ranges::find(comparison.results, "/validation/loss", &ComparedResult::metric)->runs[0].median ==
        0.75);
  // A run that is copied over another is none of the sweep.
  fs::remove_all(sweep.directory / "runs" / "1");
  fs::copy(sweep.directory / "runs" / "3", sweep.directory / "runs" / "1", fs::copy_options::recursive);
  CHECK(refusal({sweep.directory.path().string()}).find("is not the run that sweep.json describes") !=
        std::string::npos);
}
