// Sweep files: what they mean, and what is refused, and where.
#include "thimble/sweep/sweep.h"

#include <filesystem>

#include "catch.h"
#include "core/temporary_directory.h"
#include "thimble/config/changes.h"
#include "thimble/core/error.h"
#include "thimble/core/file.h"

using namespace thimble;

namespace {

using Texts = std::vector<std::string>;

// A folder with sweeps/s.yaml of that text and base.yaml.
struct SweepFiles {
  TemporaryDirectory directory;
  std::string sweep = (directory / "sweeps/s.yaml").string();

  explicit SweepFiles(const std::string& text, const std::string& base = "model: {d_model: 32}\n") {
    std::filesystem::create_directory(directory / "sweeps");
    write_file(sweep, text);
    write_file(directory / "base.yaml", base);
  }
};

Sweep load_text(const std::string& rest, const Texts& overrides = {}) {
  const SweepFiles files("config: ../base.yaml\n" + rest);
  return load_sweep(files.sweep, overrides);
}

// Reads a folder's sweep; returns a line for each problem, without the folder.
Texts sweep_complaints(const SweepFiles& files, const Texts& overrides = {}) {
  Texts lines;
  try {
    load_sweep(files.sweep, overrides);
  } catch (const ConfigError& e) {
    for (const ConfigProblem& problem : e.problems()) {
      std::string& line = lines.emplace_back(problem_text(problem));
      for (const std::string& part : {files.directory.path().string() + "/sweeps/", std::string("../")})
        for (std::size_t at = 0; (at = line.find(part)) != std::string::npos;) line.erase(at, part.size());
    }
  }
  return lines;
}

// For a file with one problem, whose first line names the config: the line about it.
std::string sweep_complaint(const std::string& rest, const Texts& overrides = {}) {
  const Texts lines = sweep_complaints(SweepFiles("config: ../base.yaml\n" + rest), overrides);
  return lines.size() == 1 ? lines[0] : fmt::format("{} problems", lines.size());
}

std::vector<Texts> settings_of(const Sweep& sweep) {
  std::vector<Texts> out;
  for (const SweepSetting& setting : sweep.settings) out.push_back(setting.overrides);
  return out;
}

}  // namespace

TEST_CASE("a grid is every combination, the last key fastest", "[sweep]") {
  const Sweep sweep =
      load_text("grid: {model.heads: [1, 2], train.optimizer.lr: [5e-4, 1e-3]}\nseeds: [4, 3]\n");
  CHECK(settings_of(sweep) == std::vector<Texts>{{"model.heads=1", "train.optimizer.lr=5e-4"},
                                                 {"model.heads=1", "train.optimizer.lr=1e-3"},
                                                 {"model.heads=2", "train.optimizer.lr=5e-4"},
                                                 {"model.heads=2", "train.optimizer.lr=1e-3"}});
  CHECK(sweep.settings[2].config.model.heads == 2);
  CHECK(sweep.settings[2].config.train.optimizer.lr == 5e-4);
  CHECK(sweep.settings[2].config.model.d_model == 32);
  CHECK(sweep.seeds == std::vector<std::uint64_t>{4, 3});
}

TEST_CASE("every entry of a list meets every point of the grid", "[sweep]") {
  const Sweep sweep = load_text(
      "grid: {model.heads: [1, 2]}\nlist:\n  - {model.layers: 2}\n  - {model.layers: 3, model.norm: pre}\n");
  CHECK(settings_of(sweep) == std::vector<Texts>{{"model.layers=2", "model.heads=1"},
                                                 {"model.layers=2", "model.heads=2"},
                                                 {"model.layers=3", "model.norm=pre", "model.heads=1"},
                                                 {"model.layers=3", "model.norm=pre", "model.heads=2"}});
  CHECK(sweep.settings[3].config.model.norm == NormOrder::pre);
  CHECK(sweep.seeds.empty());
  CHECK(settings_of(load_text("list: [{model.layers: 2}]\n")) == std::vector<Texts>{{"model.layers=2"}});
  CHECK(settings_of(load_text("seeds: [1]\n")) == std::vector<Texts>{{}});
}

TEST_CASE("changes of the command line are below every setting", "[sweep]") {
  const Sweep sweep = load_text("grid: {model.heads: [1, 2]}\n", {"train.steps=7"});
  CHECK(sweep.overrides == Texts{"train.steps=7"});
  CHECK(sweep.settings[0].config.train.steps == 7);
  CHECK(sweep.settings[1].config.train.steps == 7);
  CHECK(settings_of(sweep) == std::vector<Texts>{{"model.heads=1"}, {"model.heads=2"}});
}

TEST_CASE("the config is found from the sweep file", "[sweep]") {
  const SweepFiles files("config: ../base.yaml\n");
  CHECK(load_sweep(files.sweep).config == (files.directory / "sweeps/../base.yaml").string());
  const SweepFiles absolute("config: " + (files.directory / "base.yaml").string() + "\n");
  CHECK(load_sweep(absolute.sweep).config == (files.directory / "base.yaml").string());
}

TEST_CASE("a sweep is a map with a config", "[sweep]") {
  const auto complaint = [](const std::string& text) { return sweep_complaints(SweepFiles(text)).at(0); };
  CHECK(complaint("") == "s.yaml:1:1: must be a map with config, grid, list, seeds, not empty");
  CHECK(complaint("[1]") == "s.yaml:1:1: must be a map with config, grid, list, seeds, not a list");
  CHECK(complaint("seeds: [1]") == "s.yaml:1:1: config: missing; it names the config file to start from");
  CHECK(complaint("config:\n") == "s.yaml:1:1: config: must be the path of a config, not empty");
  CHECK(complaint("config: [a]\n") == "s.yaml:1:9: config: must be the path of a config, not a list");
  CHECK_THAT(complaint("config: none.yaml\n"), StartsWith("s.yaml:1:9: config: none.yaml: cannot be read: "));
}

TEST_CASE("keys that a sweep file does not have, or has twice", "[sweep]") {
  CHECK(sweep_complaint("seed: [1]\n") == "s.yaml:2:1: seed: unknown key, did you mean seeds?");
  CHECK(sweep_complaint("xyz: 1\n") ==
        "s.yaml:2:1: xyz: unknown key, must be one of config, grid, list, seeds");
  CHECK(sweep_complaint("seeds: [1]\nseeds: [2]\n") == "s.yaml:3:1: seeds: repeated key, first on line 2");
  CHECK(sweep_complaint("grid:\n  model.heads: [1]\n  model.heads: [2]\n") ==
        "s.yaml:4:3: model.heads: repeated key, first on line 3");
  CHECK(sweep_complaint("list:\n - {model.heads: 1, model.heads: 2}\n") ==
        "s.yaml:3:21: model.heads: repeated key, first on line 3");
  CHECK(sweep_complaint("? [a]\n: 1\n") == "s.yaml:2:3: ?: a key must be a name, not a list");
}

TEST_CASE("grid, list and seeds must be what they are, and not empty", "[sweep]") {
  CHECK(sweep_complaint("grid: [1]\n") ==
        "s.yaml:2:7: grid: must be a map from keys to lists of values, not a list");
  CHECK(sweep_complaint("grid: {}\n") ==
        "s.yaml:2:7: grid: must be a map from keys to lists of values, not empty");
  CHECK(sweep_complaint("grid: {model.heads: 1}\n") ==
        "s.yaml:2:21: model.heads: must be a list of values, not 1");
  CHECK(sweep_complaint("grid: {model.heads: []}\n") ==
        "s.yaml:2:21: model.heads: must be a list of values, not empty");
  CHECK(sweep_complaint("grid: {model: [{heads: 1}]}\n") ==
        "s.yaml:2:16: model: must be one value, not a map");
  CHECK(sweep_complaint("list: {model.heads: 1}\n") ==
        "s.yaml:2:7: list: must be a list of settings, each a map from keys to values, not a map");
  CHECK(sweep_complaint("list: []\n") ==
        "s.yaml:2:7: list: must be a list of settings, each a map from keys to values, not empty");
  CHECK(sweep_complaint("list: [1]\n") ==
        "s.yaml:2:8: list: must be a list of settings, each a map from keys to values, not 1");
  CHECK(sweep_complaint("list: [{}]\n") ==
        "s.yaml:2:8: list: must be a list of settings, each a map from keys to values, not empty");
  CHECK(sweep_complaint("seeds: 3\n") == "s.yaml:2:8: seeds: must be a list of seeds, not 3");
  CHECK(sweep_complaint("seeds: []\n") == "s.yaml:2:8: seeds: must be a list of seeds, not empty");
  CHECK_THAT(sweep_complaint("seeds: [-1]\n"), StartsWith("s.yaml:2:9: seeds: must be an integer"));
  CHECK_THAT(sweep_complaint("seeds: ['1']\n"), EndsWith(", not \"1\""));
}

TEST_CASE("values mean what they mean in a config", "[sweep]") {
  CHECK(sweep_complaint("grid: {model.heads: [!!int 1]}\n") ==
        "s.yaml:2:22: model.heads: tag tag:yaml.org,2002:int; write the plain value");
  CHECK_THAT(sweep_complaint("grid: {model.heads: ['1']}\n"),
             EndsWith("must be an integer from 1 to 8192, not \"1\""));
  CHECK_THAT(sweep_complaint("grid: {model.norm: [it's]}\n"), ContainsSubstring("not it's"));
  CHECK_THAT(sweep_complaint("grid: {model.norm: ['it''s']}\n"), ContainsSubstring("not \"it's\""));
  CHECK(load_text("grid: {model.norm: ['pre', \"post\"]}\n").settings[0].config.model.norm == NormOrder::pre);
  CHECK_THAT(sweep_complaint("grid: {model.heads: [~]}\n"),
             StartsWith("s.yaml:2:21: model.heads: must be an integer from"));
  CHECK(sweep_complaint("grid: {model.norm: [\"a\\nb\"]}\n") ==
        "s.yaml:2:21: model.norm: must be UTF-8 without control characters");
  CHECK(sweep_complaint("grid: &a {model.heads: [1]}\nlist: *a\n") ==
        "s.yaml:3:7: an alias; write the value itself");
}

TEST_CASE("a path starts at the sweep file", "[sweep]") {
  config::Report report("/data/s.yaml");
  const auto map =
      parse_yaml("{task.file: 'it''s.tsv', task.test_file: ../b.tsv}", report.start_of_file(), report);
  config::Changes changes;
  config::ChangeReader reader(report);
  for (std::size_t i = 0; i < 2; ++i) reader.read_change(map.value().keys[i], map->values[i], changes);
  CHECK_NOTHROW(report.finish());
  CHECK(changes.at(0).text == "task.file='/data/it''s.tsv'");
  CHECK(changes.at(1).text == "task.test_file='/b.tsv'");
}

TEST_CASE("what a config refuses is refused where the sweep says it", "[sweep]") {
  CHECK(sweep_complaint("grid: {model.head: [1, 2]}\n") ==
        "s.yaml:2:8: model.head: unknown key, did you mean model.heads?");
  CHECK(sweep_complaint("list:\n - {model.heads: many}\n") ==
        "s.yaml:3:18: model.heads: must be an integer from 1 to 8192, not many");
  CHECK(sweep_complaint("grid: {model.heads: [1, 3], train.steps: [1, 2]}\n") ==
        "s.yaml:2:25: model.heads: 3 heads do not divide a d_model of 32; change one, or set "
        "model.attention.d_key and d_value");
  CHECK(sweep_complaint("seeds: [1]\n", {"model.heads=5"}) ==
        "command line: model.heads=5: 5 heads do not divide a d_model of 32; change one, or set "
        "model.attention.d_key and d_value");
}

TEST_CASE("what is wrong with the config itself is said once", "[sweep]") {
  const SweepFiles files("config: ../base.yaml\ngrid: {model.layers: [1, 2]}\n", "model: {head: 1}\n");
  CHECK(sweep_complaints(files) ==
        Texts{"s.yaml:1:9: config: base.yaml:1:9: model.head: unknown key, did you mean model.heads?"});
}

TEST_CASE("all problems of a sweep are told at once", "[sweep]") {
  CHECK(sweep_complaints(
            SweepFiles("config: ../base.yaml\nsed: 1\ngrid: {model.heads: [3, x], model.layers: 2}\n")) ==
        Texts{"s.yaml:2:1: sed: unknown key, did you mean seeds?",
              "s.yaml:3:22: model.heads: 3 heads do not divide a d_model of 32; change one, or set "
              "model.attention.d_key and d_value",
              "s.yaml:3:25: model.heads: must be an integer from 1 to 8192, not x",
              "s.yaml:3:43: model.layers: must be a list of values, not 2"});
}

TEST_CASE("a setting or seed that is there before", "[sweep]") {
  CHECK(sweep_complaint("seeds: [4, 5, 4]\n") == "s.yaml:2:15: seeds: repeated seed 4, first on line 2");
  CHECK(sweep_complaint("grid: {train.optimizer.lr: [5e-4, 0.0005], model.heads: [1, 2]}\n") ==
        "s.yaml:2:35: train.optimizer.lr: the same config as that of train.optimizer.lr=5e-4 "
        "model.heads=1");
  CHECK(sweep_complaint("list:\n - {model.heads: 2}\n - {model.heads: 2}\n") ==
        "s.yaml:4:18: model.heads: the same config as that of model.heads=2");
}

TEST_CASE("what a sweep may not set, or not twice", "[sweep]") {
  const std::string threads = "each run of a sweep has one thread, and it would change no result; see --jobs";
  CHECK(sweep_complaint("grid: {train.threads: [2]}\n") == "s.yaml:2:24: train.threads: " + threads);
  CHECK(sweep_complaint("list: [{train.threads: 2}]\n") == "s.yaml:2:24: train.threads: " + threads);
  CHECK(sweep_complaint("seeds: [1]\n", {"train.threads=2"}) == "command line: train.threads=2: " + threads);
  const std::string seed = "seeds gives it already; leave one of them out";
  CHECK(sweep_complaint("grid: {train.seed: [1, 2]}\nseeds: [3]\n") == "s.yaml:2:21: train.seed: " + seed);
  CHECK(sweep_complaint("list: [{train.seed: 2}]\nseeds: [3]\n") == "s.yaml:2:21: train.seed: " + seed);
  CHECK(sweep_complaint("seeds: [3]\n", {"train.seed=2"}) == "command line: train.seed=2: " + seed);
  CHECK(load_text("grid: {train.seed: [1, 2]}\n").settings[1].config.train.seed == 2);
  CHECK(sweep_complaint("grid: {model.heads: [1, 2]}\nlist: [{model.heads: 4}]\n") ==
        "s.yaml:3:22: model.heads: it is in the grid, too; leave one of them out");
  CHECK(sweep_complaint("grid: {model.heads: [1, 2]}\n", {"model.heads=4"}) ==
        "command line: model.heads=4: the sweep varies it; change the sweep file");
  CHECK(sweep_complaint("list: [{model.heads: 2}]\n", {"model.heads=4"}) ==
        "command line: model.heads=4: the sweep varies it; change the sweep file");
}

TEST_CASE("a sweep with too many runs is refused before its configs are looked at", "[sweep]") {
  std::string values = "0";
  for (int i = 1; i < 101; ++i) values += ", " + std::to_string(i);
  const std::string grid =
      "grid: {train.optimizer.momentum: [" + values + "], task.length: [" + values + "]}\n";
  CHECK(sweep_complaint(grid) == "s.yaml:1:1: 10201 runs; a sweep has at most 10000");
}
