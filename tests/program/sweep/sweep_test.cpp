// Sweep files: their settings, and the places of their problems.
#include "program/sweep/sweep.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "catch.h"
#include "problems.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/config/changes.h"
#include "train/config/value.h"
#include "train/files/temporary_directory.h"

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

std::vector<ConfigProblem> sweep_problems(const SweepFiles& files, const Texts& overrides = {}) {
  return problems_of([&] { load_sweep(files.sweep, overrides); });
}

// Returns the problem of a file that has one and whose first line names the config.
ConfigProblem sweep_problem(const std::string& rest, const Texts& overrides = {}) {
  const auto all = sweep_problems(SweepFiles("config: ../base.yaml\n" + rest), overrides);
  if (all.size() != 1) throw std::logic_error(fmt::format("{} problems: {}", all.size(), rest));
  return all[0];
}
std::string sweep_place(const std::string& rest, const Texts& overrides = {}) {
  return place(sweep_problem(rest, overrides));
}

std::vector<Texts> settings_of(const Sweep& sweep) {
  std::vector<Texts> out;
  for (const SweepSetting& setting : sweep.settings) out.push_back(setting.overrides);
  return out;
}

// Returns the config of the setting with these overrides.
Config config_of(const Sweep& sweep, const Texts& overrides) {
  const auto found = std::ranges::find(sweep.settings, overrides, &SweepSetting::overrides);
  if (found == sweep.settings.end()) throw std::logic_error("no such setting");
  return found->config.values();
}

}  // namespace

TEST_CASE("a grid is every combination, the last key fastest", "[sweep]") {
  const Sweep sweep =
      load_text("grid: {model.heads: [1, 2], train.optimizer.lr: [5e-4, 1e-3]}\nseeds: [4, 3]\n");
  CHECK(settings_of(sweep) == std::vector<Texts>{{"model.heads=1", "train.optimizer.lr=5e-4"},
                                                 {"model.heads=1", "train.optimizer.lr=1e-3"},
                                                 {"model.heads=2", "train.optimizer.lr=5e-4"},
                                                 {"model.heads=2", "train.optimizer.lr=1e-3"}});
  const Config config = config_of(sweep, {"model.heads=2", "train.optimizer.lr=5e-4"});
  CHECK((config.model.heads == 2 && config.train.optimizer.lr == 5e-4 && config.model.d_model == 32));
  CHECK(sweep.seeds == std::vector<std::uint64_t>{4, 3});
}

TEST_CASE("every entry of a list meets every point of the grid", "[sweep]") {
  const Sweep sweep = load_text(
      "grid: {model.heads: [1, 2]}\nlist:\n  - {model.layers: 2}\n  - {model.layers: 3, model.norm: pre}\n");
  CHECK(settings_of(sweep) == std::vector<Texts>{{"model.layers=2", "model.heads=1"},
                                                 {"model.layers=2", "model.heads=2"},
                                                 {"model.layers=3", "model.norm=pre", "model.heads=1"},
                                                 {"model.layers=3", "model.norm=pre", "model.heads=2"}});
  CHECK(config_of(sweep, {"model.layers=3", "model.norm=pre", "model.heads=2"}).model.norm == NormOrder::pre);
  CHECK(sweep.seeds.empty());
  CHECK(settings_of(load_text("list: [{model.layers: 2}]\n")) == std::vector<Texts>{{"model.layers=2"}});
  CHECK(settings_of(load_text("seeds: [1]\n")) == std::vector<Texts>{{}});
}

TEST_CASE("changes of the command line are below every setting", "[sweep]") {
  const Sweep sweep = load_text("grid: {model.heads: [1, 2]}\n", {"train.steps=7"});
  CHECK(sweep.overrides == Texts{"train.steps=7"});
  for (const SweepSetting& setting : sweep.settings) CHECK(setting.config.train.steps == 7);
  CHECK(settings_of(sweep) == std::vector<Texts>{{"model.heads=1"}, {"model.heads=2"}});
}

TEST_CASE("the config is found from the sweep file", "[sweep]") {
  const SweepFiles files("config: ../base.yaml\n");
  CHECK(load_sweep(files.sweep).config == (files.directory / "sweeps/../base.yaml").string());
  const SweepFiles absolute("config: " + (files.directory / "base.yaml").string() + "\n");
  CHECK(load_sweep(absolute.sweep).config == (files.directory / "base.yaml").string());
}

TEST_CASE("a sweep is a map with a config", "[sweep]") {
  const auto first_place = [](const std::string& text) {
    return place(sweep_problems(SweepFiles(text)).at(0));
  };
  CHECK(first_place("") == "1:1");
  CHECK(first_place("[1]") == "1:1");
  CHECK(first_place("config: [a]\n") == "1:9 config");
  CHECK(first_place("config: ''\n") == "1:9 config");
}

TEST_CASE("keys that a sweep file does not have, or has twice", "[sweep]") {
  CHECK(sweep_place("seed: [1]\n") == "2:1 seed");
  CHECK(sweep_place("xyz: 1\n") == "2:1 xyz");
  CHECK(sweep_place("grid:\n  model.heads: [1]\n  model.heads: [2]\n") == "4:3 model.heads");
  CHECK(sweep_place("list:\n - {model.heads: 1, model.heads: 2}\n") == "3:21 model.heads");
  CHECK(sweep_place("? [a]\n: 1\n") == "2:3 ?");
}

TEST_CASE("grid, list and seeds must be what they are, and not empty", "[sweep]") {
  CHECK(sweep_place("grid: {}\n") == "2:7 grid");
  CHECK(sweep_place("grid: {model.heads: []}\n") == "2:21 model.heads");
  CHECK(sweep_place("list: []\n") == "2:7 list");
  CHECK(sweep_place("list: [{}]\n") == "2:8 list");
  CHECK(sweep_place("seeds: []\n") == "2:8 seeds");
  CHECK(sweep_place("seeds: [[1]]\n") == "2:9 seeds");
  CHECK_THAT(sweep_problem("seeds: ['1']\n").rule, EndsWith(", not \"1\""));
}

TEST_CASE("values mean what they mean in a config", "[sweep]") {
  CHECK_THAT(sweep_problem("grid: {model.heads: ['1']}\n").rule, EndsWith("not \"1\", did you mean 1?"));
  CHECK_THAT(sweep_problem("grid: {model.norm: [it's]}\n").rule, ContainsSubstring("not it's"));
  CHECK_THAT(sweep_problem("grid: {model.norm: ['it''s']}\n").rule, ContainsSubstring("not \"it's\""));
  CHECK(load_text("grid: {model.norm: ['pre', \"post\"]}\n").settings[0].config.model.norm == NormOrder::pre);
  CHECK(sweep_place("grid: {model.heads: [~]}\n") == "2:21 model.heads");
  CHECK(sweep_place("grid: {model.heads: [[1]]}\n") == "2:22 model.heads");
  CHECK(sweep_place("grid: &a {model.heads: [1]}\nlist: *a\n") == "3:7");
}

TEST_CASE("a path starts at the sweep file", "[sweep]") {
  config::Report report("/data/s.yaml");
  const auto map = parse_yaml("{task.file: 'it''s.tsv', task.test_file: ../b.tsv, task.validation_file: ''}",
                              report.start_of_file(), report);
  config::Changes changes;
  config::ChangeReader reader(report);
  for (std::size_t i = 0; i < 3; ++i) reader.read_change(map.value().keys[i], map->values[i], changes);
  CHECK_NOTHROW(report.finish());
  CHECK(changes.at(0).text == "task.file='/data/it''s.tsv'");
  CHECK(changes.at(1).text == "task.test_file='/b.tsv'");
  CHECK(changes.at(2).text == "task.validation_file=''");  // none
}

TEST_CASE("a setting of a sweep is the text that its YAML stands for", "[sweep]") {
  config::Report report("/data/s.yaml");
  for (const std::string value :
       {"my #2.txt", "[x]", "null", "~", "- a", "a: b", " x ", "'", "\"q\"", "it's", "\t", "3"}) {
    CAPTURE(value);
    const auto map = parse_yaml("{task.file: " + config::yaml_text(value == "\t" ? "x" : value) +
                                    ", task.separator: " + config::yaml_text(value) + "}",
                                report.start_of_file(), report);
    config::Changes changes;
    config::ChangeReader reader(report);
    for (std::size_t i = 0; i < 2; ++i) reader.read_change(map.value().keys[i], map->values[i], changes);
    const TaskConfig task = parse_config("task: {name: file}\n", "t.yaml", texts(changes)).task;
    CHECK(task.options.separator == value);
    CHECK(task.file == "/data/" + (value == "\t" ? "x" : value));
  }
  CHECK_NOTHROW(report.finish());
}

TEST_CASE("a problem of a setting is reported at its value in the sweep file", "[sweep]") {
  CHECK(sweep_place("list:\n - {model.heads: many}\n") == "3:18 model.heads");
  CHECK(sweep_place("grid: {model.heads: [1, 3], train.steps: [1, 2]}\n") == "2:25 model.heads");
}

TEST_CASE("a problem of the config itself is reported once", "[sweep]") {
  const SweepFiles files("config: ../base.yaml\ngrid: {model.layers: [1, 2]}\n", "model: {head: 1}\n");
  const auto found = sweep_problems(files);
  CHECK(places(found) == Texts{"1:9 config"});
  CHECK_THAT(found[0].rule, ContainsSubstring("base.yaml:1:9: model.head: "));
}

TEST_CASE("all problems of a sweep are reported at once", "[sweep]") {
  const SweepFiles files("config: ../base.yaml\nsed: 1\ngrid: {model.heads: [3, x], model.layers: 2}\n");
  CHECK(places(sweep_problems(files)) ==
        Texts{"2:1 sed", "3:22 model.heads", "3:25 model.heads", "3:43 model.layers"});
}

TEST_CASE("a setting or seed that is there before", "[sweep]") {
  CHECK(sweep_place("list:\n - {model.heads: 2}\n - {model.heads: 2}\n") == "4:18 model.heads");
}

TEST_CASE("what a sweep may not set, or not twice", "[sweep]") {
  for (const char* text : {"grid: {train.threads: [2]}\n", "list: [{train.threads: 2}]\n"})
    CHECK(sweep_place(text) == "2:24 train.threads");
  CHECK(sweep_place("seeds: [1]\n", {"train.threads=2"}) == "argument 1 train.threads");
  for (const char* text :
       {"grid: {train.seed: [1, 2]}\nseeds: [3]\n", "list: [{train.seed: 2}]\nseeds: [3]\n"})
    CHECK(sweep_place(text) == "2:21 train.seed");
  CHECK(sweep_place("seeds: [3]\n", {"train.seed=2"}) == "argument 1 train.seed");
  CHECK(config_of(load_text("grid: {train.seed: [1, 2]}\n"), {"train.seed=2"}).train.seed == 2);
  CHECK(sweep_place("list: [{model.heads: 2}]\n", {"model.heads=4"}) == "argument 1 model.heads");
}

TEST_CASE("a random search draws values by seed, key and sample", "[sweep]") {
  const std::string keys =
      "model.norm: [pre, post], model.dropout: {uniform: [0, 0.3]}, train.optimizer.lr: {log_uniform: [1e-4, 1e-2]}, model.layers: {int_uniform: [1, 3]}";
  const auto draw = [](const std::string& random) {
    return settings_of(load_text("random: {" + random + "}\n"));
  };
  const auto settings = draw("samples: 3, seed: 7, " + keys);
  CHECK(settings ==
        std::vector<Texts>{
            {"model.norm=pre", "model.dropout=0.01999", "train.optimizer.lr=0.0002846", "model.layers=3"},
            {"model.norm=post", "model.dropout=0.1602", "train.optimizer.lr=0.0001452", "model.layers=2"},
            {"model.norm=pre", "model.dropout=0.1941", "train.optimizer.lr=0.0001463", "model.layers=1"}});
  // More samples do not change the first ones, another key does not change those of a key, another seed does.
  const auto more = draw("samples: 40, seed: 7, " + keys);
  CHECK(std::equal(settings.begin(), settings.end(), more.begin()));
  const auto fewer = draw("samples: 3, seed: 7, train.optimizer.lr: {log_uniform: [1e-4, 1e-2]}");
  for (std::size_t i = 0; i < 3; ++i) CHECK(fewer[i][0] == settings[i][2]);
  CHECK(draw("samples: 3, seed: 8, " + keys) != settings);

  std::set<std::string> norms, layers;
  double low_rates = 0;
  for (const Texts& texts : more) {
    norms.insert(texts[0]);
    layers.insert(texts[3]);
    const double dropout = std::stod(texts[1].substr(14)), rate = std::stod(texts[2].substr(19));
    CHECK((dropout >= 0 && dropout <= 0.3 && rate >= 1e-4 && rate <= 1e-2));
    low_rates += rate < 1e-3 ? 1 : 0;  // half of them, by the logarithm
  }
  CHECK(norms.size() == 2);
  CHECK(layers.size() == 3);
  CHECK((low_rates > 10 && low_rates < 30));
}

TEST_CASE("samples meet every entry of the list and point of the grid, and differ", "[sweep]") {
  const auto settings = settings_of(load_text(
      "list: [{model.norm: pre}, {model.norm: post}]\nrandom: {samples: 2, model.layers: [1, 2]}\n"));
  REQUIRE(settings.size() == 4);
  CHECK((settings[0][0] == "model.norm=pre" && settings[3][0] == "model.norm=post"));
  CHECK(settings[0][1] != settings[1][1]);
  CHECK((settings[0][1] == settings[2][1] && settings[1][1] == settings[3][1]));
  CHECK(settings_of(load_text("random: {samples: 4, model.layers: {int_uniform: [1, 4]}}\n")).size() == 4);
  CHECK(sweep_place("random: {samples: 3, model.layers: [1, 2]}\n") == "2:9 random");
}

TEST_CASE("a value that rounding moves out of its range is the end of the range", "[sweep]") {
  for (const Texts& texts :
       settings_of(load_text("random: {samples: 1, model.dropout: {uniform: [0.100049, 0.10004900001]}}\n")))
    CHECK(texts == Texts{"model.dropout=0.100049"});
  for (const Texts& texts :
       settings_of(load_text("random: {samples: 1, model.dropout: {uniform: [0.10009, 0.10009000001]}}\n")))
    CHECK(texts == Texts{"model.dropout=0.10009000001"});
}

TEST_CASE("problems of a random search", "[sweep]") {
  CHECK(sweep_place("random: [1]\n") == "2:9 random");
  CHECK(sweep_place("random: {model.layers: [1, 2]}\n") == "2:9 random.samples");
  CHECK(sweep_place("random: {sample: 4, model.layers: [1, 2]}\n") == "2:10 sample");
  CHECK(sweep_place("random: {samples: 0, model.layers: [1, 2]}\n") == "2:19 random.samples");
  CHECK(sweep_place("random: {samples: 1, seed: -1, model.layers: [1, 2]}\n") == "2:28 random.seed");
  CHECK(sweep_place("random: {samples: 1, model.layers: 2}\n") == "2:36 model.layers");
  CHECK(sweep_place("random: {samples: 1, model.layers: {unifrm: [1, 2]}}\n") == "2:37 unifrm");
  CHECK(sweep_place("random: {samples: 1, model.layers: {int_uniform: [2, 1]}}\n") == "2:50 model.layers");
  CHECK(sweep_place("random: {samples: 1, model.layers: {int_uniform: [1, 2.5]}}\n") == "2:50 model.layers");
  CHECK(sweep_place("random: {samples: 1, model.dropout: {uniform: [0]}}\n") == "2:47 model.dropout");
  CHECK(sweep_place("random: {samples: 1, model.dropout: {log_uniform: [0, 0.1]}}\n") ==
        "2:51 model.dropout");
  CHECK(sweep_place("random: {samples: 1, model.dropout: {uniform: [2, 3]}}\n") == "2:48 model.dropout");
  CHECK(sweep_place("random: {samples: 1, train.threads: [1, 2]}\n") == "2:38 train.threads");
  CHECK(sweep_place("grid: {model.layers: [1]}\nrandom: {samples: 1, model.layers: [1, 2]}\n") ==
        "3:37 model.layers");
  CHECK(sweep_place("list: [{model.layers: 1}]\nrandom: {samples: 1, model.layers: [1, 2]}\n") ==
        "2:23 model.layers");
  CHECK(sweep_place("random: {samples: 1, model.layers: [1, 2]}\n", {"model.layers=1"}) ==
        "argument 1 model.layers");
}

TEST_CASE("halving compares settings at steps of evaluations before the last step", "[sweep]") {
  const std::string config = "list: [{train.steps: 100, train.evaluate_every: 10}]\n";
  const Sweep sweep = load_text(config + "halving: {steps: [10, 40], reduction_factor: 3}\n");
  CHECK(sweep.halving.steps == std::vector<std::int64_t>{10, 40});
  CHECK(sweep.halving.reduction_factor == 3);
  CHECK(load_text(config + "halving: {steps: [10]}\n").halving.reduction_factor == 2);
  const auto halving_place = [&](const std::string& text) {
    return sweep_place(config + "halving: " + text + "\n");
  };
  CHECK(halving_place("[1]") == "3:10 halving");
  CHECK(halving_place("{reduction_factor: 2}") == "3:10 halving.steps");
  CHECK(halving_place("{steps: 10}") == "3:18 halving.steps");
  CHECK(halving_place("{steps: [20, 10]}") == "3:23 halving.steps");
  CHECK(halving_place("{steps: [0]}") == "3:19 halving.steps");
  CHECK(halving_place("{steps: [10], reduction_factor: 1}") == "3:42 halving.reduction_factor");
  CHECK(halving_place("{steps: [10], reduction_factor: [3]}") == "3:42 halving.reduction_factor");
  CHECK(halving_place("{steps: [10, [20]]}") == "3:23 halving.steps");
  CHECK(halving_place("{steps: [10], factor: 3}") == "3:24 factor");
  CHECK(halving_place("{steps: [15]}") == "3:18 halving.steps");
  CHECK(halving_place("{steps: [100]}") == "3:18 halving.steps");
  CHECK_THAT(sweep_problem("halving: {steps: [100]}\n").rule,
             ContainsSubstring("a multiple of train.evaluate_every (0)"));
}

TEST_CASE("a sweep with too many runs is refused before its configs are read", "[sweep]") {
  std::string values = "0";
  for (int i = 1; i < 101; ++i) values += ", " + std::to_string(i);
  const std::string grid =
      "grid: {train.optimizer.momentum: [" + values + "], task.length: [" + values + "]}\n";
  CHECK(sweep_place(grid) == "1:1");
  CHECK(sweep_place("random: {samples: 5001, train.optimizer.lr: {uniform: [0.1, 0.2]}}\nseeds: [1, 2]\n") ==
        "1:1");
}

TEST_CASE("settings of a sweep share the source of their data", "[sweep]") {
  const SweepFiles files(
      "config: ../base.yaml\ngrid: {train.seed: [1, 2], task.min_count: [1, 2]}\n",
      "task: {name: file, file: t.tsv}\nmodel: {output: {per: sequence}}\ntrain: {batch: 8, steps: 50}\n");
  std::string rows;
  for (int i = 0; i < 100; ++i) rows += fmt::format("w{} is\t{}\n", i, i % 2);
  write_file(files.directory / "t.tsv", rows);
  const Sweep sweep = load_sweep(files.sweep);
  std::set<const Source*> sources;
  for (const SweepSetting& setting : sweep.settings) sources.insert(setting.config.source.get());
  CHECK(sweep.settings.size() == 4);
  CHECK(sources.size() == 2);  // one for each vocabulary
  CHECK_FALSE(sources.contains(nullptr));
}
