// The file as a whole: text, YAML syntax, reading, the order of the report.
#include <fstream>

#include "catch.h"
#include "config_problems.h"
#include "thimble/engine/error.h"
#include "train/data/table/table.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

TEST_CASE("a config is read from a file and named in its problems", "[config]") {
  const TemporaryDirectory folder;
  const std::string file = folder / "t.yaml";
  std::ofstream(file) << "train: {steps: 7}\n";
  CHECK(load_config(file).train.steps == 7);
  CHECK(load_config(file, {"train.steps=8"}).train.steps == 8);
  CHECK_THROWS_WITH(load_config(file, {"train.steps=x"}), StartsWith(file + ": 1 problem\ncommand line: "));
}

TEST_CASE("a file that cannot be read is named with the reason", "[config]") {
  CHECK_THROWS_AS(load_config("/nonexistent/a.yaml"), ConfigError);
  CHECK_THROWS_WITH(load_config("/nonexistent/a.yaml"),
                    Equals("/nonexistent/a.yaml: cannot be read: No such file or directory"));
  CHECK_THROWS_AS(load_config(""), ConfigError);
  CHECK_THROWS_WITH(load_config("/dev/zero"), Equals("/dev/zero: cannot be read: Is not a regular file"));
  const TemporaryDirectory folder;
  const std::string huge = folder / "huge";
  std::ofstream(huge) << std::string((1 << 20) + 1, '#');
  CHECK_THROWS_AS(load_config(huge), ConfigError);
  CHECK_THROWS_WITH(load_config(huge), EndsWith(": 1048577 bytes; 1048576 is the most"));
}

TEST_CASE("an empty file is refused, an empty map is all defaults", "[config]") {
  for (const std::string text : {"", "\n\n", "# only a comment\n", "---\n", "~"}) CHECK(place(text) == "1:1");
  CHECK(to_yaml(parse_config("{}", "t.yaml")) == to_yaml(Config{}));
}

TEST_CASE("a syntax error is placed", "[config]") {
  CHECK(place(", task: {}\n") == "1:1");
  CHECK(place("task: {name: copy\ndata: {train: 1}\n") == "2:5");
  CHECK(place("task: {}\nmodel: a: b\n") == "2:9");
  CHECK(place("task: *nowhere\n") == "1:7");
}

TEST_CASE("text that is not UTF-8 is refused at its first bad byte", "[config]") {
  CHECK(place("# \xc3\xa9\xff\ntask: {}\n") == "1:4");
  CHECK(place("task: {}\n# \xc3") == "2:3");  // cut at the end
  CHECK(place("\xff\xfet\0a\0") == "1:1");    // UTF-16
  CHECK(is_valid("# \xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82\ntask: {}\n"));
  CHECK(is_valid("\xef\xbb\xbftask: {}\n"));  // a byte order mark
}

TEST_CASE("control characters and tabs in the indentation are refused", "[config]") {
  CHECK(place("task: {}\nda\x04ta: 3\n") == "2:3");
  CHECK(place(std::string("task: {}\n\0", 10)) == "2:1");
  CHECK(is_valid("task: {}\t# fine\n"));
}

TEST_CASE("line ends may be those of Windows", "[config]") {
  CHECK(parse_config("train:\r\n  steps: 7\r\n  batch: 8\r\n", "t.yaml").train.steps == 7);
  CHECK(place("train:\r\n  steps: 7\r\n  heads: 8\r\n") == "3:3 train.heads");
}

TEST_CASE("JSON is YAML", "[config]") {
  CHECK(parse_config(R"({"train": {"steps": 7, "optimizer": {"name": "sgd"}}})", "t.json").train.steps == 7);
}

TEST_CASE("nesting beyond reason is refused, whatever it is made of", "[config]") {
  std::string maps, flow, keys;
  for (int i = 0; i < 10000; ++i) {
    flow += "{a: ";
    keys += "? ";
  }
  for (int i = 0; i < 1000; ++i) maps += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  for (const std::string& text : {std::string(10000, '['), std::string(10000, '{'), flow, maps, keys,
                                  std::string(500, '[') + "1" + std::string(500, ']')})
    CHECK_THAT(problem(text).rule, EndsWith("nested too deeply"));
  CHECK_THAT(problem(std::string(400, '[') + "1" + std::string(400, ']')).rule, EndsWith("not a list"));
}

TEST_CASE("a report shows the first hundred problems", "[config]") {
  std::string many;
  for (int i = 0; i < 103; ++i) many += fmt::format("k{}: 1\n", i);
  CHECK_THROWS_WITH(parse_config(many, "t.yaml"), StartsWith("t.yaml: 103 problems\n") &&
                                                      ContainsSubstring("\nt.yaml:100:1: k99: ") &&
                                                      EndsWith("\nand 3 more"));
  CHECK_THROWS_WITH(parse_config(many.substr(0, many.find("k100")), "t.yaml"), !ContainsSubstring(" more"));
}

TEST_CASE("flow maps have right columns", "[config]") {
  CHECK(places(problems("train:\n  optimizer: {name: adm, lr: 5e-4, beta1: 2}\n")) ==
        std::vector<std::string>{"2:21 train.optimizer.name", "2:43 train.optimizer.beta1"});
}

TEST_CASE("all problems are reported at once, in the order of the file, then of the command line",
          "[config]") {
  CHECK(places(problems("train: {shards: 4, batch: 2}\n"
                        "model:\n"
                        "  heads: 3\n"
                        "  d_model: 32\n"
                        "  num_layers: 2\n"
                        "task: {name: nothing}\n",
                        {"train.steps=0", "data.train=many"})) ==
        std::vector<std::string>{"1:17 train.shards", "3:10 model.heads", "5:3 model.num_layers",
                                 "6:14 task.name", "argument 1 train.steps", "argument 2 data.train"});
}

TEST_CASE("a problem has a key, a location and a rule", "[config]") {
  const auto all = problems("model: {layers: x}\ntrian: {}\n", {"train.steps=0", "model.heads=3"});
  REQUIRE(all.size() == 4);
  CHECK((all[0].key == "model.layers" && !all[0].rule.empty()));
  CHECK((all[0].location.source == "t.yaml" && all[0].location.line == 1 && all[0].location.column == 17));
  CHECK((all[1].key == "trian" && all[1].location.line == 2 && all[1].location.argument == 0));
  CHECK((all[2].key == "train.steps" && all[2].location.argument == 1));
  CHECK((all[2].location.source == "train.steps=0" && all[2].location.line == 0));
  CHECK((all[3].key == "model.heads" && all[3].location.argument == 2));  // 3 heads and a d_model of 32
  const auto missing = [] {
    try {
      load_config("/nonexistent/a.yaml");
    } catch (const ConfigError& e) {
      return e.problems().at(0);
    }
    return ConfigProblem{};
  }();
  CHECK(missing.rule == "/nonexistent/a.yaml: cannot be read: No such file or directory");
}

TEST_CASE("the config of a task alone has its mask and what it answers", "[config]") {
  CHECK(task_config("induction", {}).model.attention.mask == Mask::causal);
  CHECK(task_config("reverse", {}).model.attention.mask == Mask::none);
  CHECK(task_config("parity", {}).model.output.per == OutputPer::sequence);
  const ModelConfig dates = task_config("dates", {}).model;
  CHECK((dates.output.per == OutputPer::next && dates.attention.mask == Mask::causal));
  CHECK_THROWS_AS(task_config("nothing", {}), ConfigError);
}

TEST_CASE("a file that cannot be parsed raises no conflicts", "[config]") {
  CHECK(place("task: {", {"model.heads=3"}) == "1:1");
}

TEST_CASE("a config is loaded without its data files and opened with them", "[config]") {
  const TemporaryDirectory folder;
  const std::string config = folder / "t.yaml";
  std::ofstream(config) << "task: {name: file, file: d.tsv, validation_file: d.tsv, test_file: d.tsv}\n"
                           "model: {max_length: 2, output: {per: sequence}}\n"
                           "train: {batch: 4, shards: 1}\n";
  CHECK_NOTHROW(load_config(config));
  CHECK_THROWS_AS(open_config(config), DataError);  // there is no d.tsv
  std::ofstream(folder / "d.tsv") << "a b c\tx\n";
  CHECK(places(problems_of([&] { open_config(config); })) ==
        std::vector<std::string>{"2:21 model.max_length", "3:16 train.batch"});
  CHECK(open_config(config, {"model.max_length=3", "train.batch=1"}).source->files().size() == 3);
}
