// The file as a whole: text, YAML syntax, reading, the order of the report.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <fstream>

#include "catch.h"
#include "complaints.h"
#include "core/temporary_directory.h"
#include "thimble/core/error.h"

using namespace thimble;

namespace {

// A file that is removed with the object.
struct TemporaryFile {
  explicit TemporaryFile(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  ~TemporaryFile() { std::filesystem::remove(path); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string path =
      std::filesystem::temp_directory_path() / ("thimble_config_" + std::to_string(::getpid()) + ".yaml");
};

const std::string kMap = "a map of base, task, data, model, train";

}  // namespace

TEST_CASE("a config is read from a file and named in its problems", "[config]") {
  const TemporaryFile file("train: {steps: 7}\n");
  CHECK(load_config(file.path).train.steps == 7);
  CHECK(load_config(file.path, {"train.steps=8"}).train.steps == 8);
  CHECK_THROWS_WITH(load_config(file.path, {"train.steps=x"}),
                    StartsWith(file.path + ": 1 problem\ncommand line: "));
}

TEST_CASE("a file that cannot be read is named with the reason", "[config]") {
  CHECK_THROWS_AS(load_config("/nonexistent/a.yaml"), ConfigError);
  CHECK_THROWS_WITH(load_config("/nonexistent/a.yaml"),
                    Equals("/nonexistent/a.yaml: cannot be read: No such file or directory"));
  CHECK_THROWS_AS(load_config("/tmp"), ConfigError);
  CHECK_THROWS_WITH(load_config("/tmp"), Equals("/tmp: cannot be read: Is a directory"));
  CHECK_THROWS_AS(load_config(""), ConfigError);
  CHECK_THROWS_WITH(load_config("/dev/zero"), Equals("/dev/zero: cannot be read: Is no regular file"));
  const TemporaryDirectory folder;
  const std::string pipe = folder / "pipe", loop = folder / "loop", secret = folder / "secret";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(load_config(pipe), EndsWith("Is no regular file"));
  std::filesystem::create_symlink(loop, loop);
  CHECK_THROWS_WITH(load_config(loop), EndsWith("cannot be read: Too many levels of symbolic links"));
  std::ofstream(secret) << "{}";
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  if (::geteuid() != 0)
    CHECK_THROWS_WITH(load_config(secret), Equals(secret + ": cannot be read: Permission denied"));
  const TemporaryFile huge(std::string((1 << 20) + 1, '#'));
  CHECK_THROWS_AS(load_config(huge.path), ConfigError);
  CHECK_THROWS_WITH(load_config(huge.path), EndsWith(": 1048577 bytes; 1048576 is the most"));
}

TEST_CASE("an empty file is refused, an empty map is all defaults", "[config]") {
  for (const std::string text : {"", "\n\n", "# only a comment\n", "---\n", "~"})
    CHECK(complaint(text) == "t.yaml:1:1: the file is empty; a config is " + kMap);
  CHECK(to_yaml(parse_config("{}", "t.yaml")) == to_yaml(Config{}));
}

TEST_CASE("a file that is no map is refused", "[config]") {
  CHECK(complaint("\n- 1\n- 2\n") == "t.yaml:2:1: must be " + kMap + ", not a list");
  CHECK(complaint("hello") == "t.yaml:1:1: must be " + kMap + ", not hello");
}

TEST_CASE("a second document is refused", "[config]") {
  CHECK(complaint("task: {}\n---\nmodel: {}\n") == "t.yaml:2:1: a second document; a config file holds one");
  CHECK(complaint(", task: {}\n") == "t.yaml:1:1: a second document; a config file holds one");
}

TEST_CASE("a syntax error is placed", "[config]") {
  CHECK_THAT(complaint("task: {name: copy\ndata: {train: 1}\n"), StartsWith("t.yaml:2:5: not valid YAML: "));
  CHECK_THAT(complaint("task: {}\nmodel: a: b\n"), StartsWith("t.yaml:2:9: not valid YAML: "));
  CHECK_THAT(complaint("task: *nowhere\n"), StartsWith("t.yaml:1:7: not valid YAML: "));
}

TEST_CASE("text that is not UTF-8 is refused at its first bad byte", "[config]") {
  CHECK(complaint("# \xc3\xa9\xff\ntask: {}\n") == "t.yaml:1:4: not UTF-8 text");
  CHECK(complaint("task: {}\n# \xc3") == "t.yaml:2:3: not UTF-8 text");  // cut at the end
  CHECK(complaint("\xff\xfet\0a\0") == "t.yaml:1:1: not UTF-8 text");    // UTF-16
  CHECK(complaint("# \xc0\xaf\n") == "t.yaml:1:3: not UTF-8 text");      // an overlong slash
  CHECK(complaint("# \xe0\x80\xaf\n") == "t.yaml:1:3: not UTF-8 text");  // another
  CHECK(complaint("# \xf0\x80\x80\xaf\n") == "t.yaml:1:3: not UTF-8 text");
  CHECK(complaint("# \xed\xa0\x80\n") == "t.yaml:1:3: not UTF-8 text");      // a surrogate
  CHECK(complaint("# \xf4\x90\x80\x80\n") == "t.yaml:1:3: not UTF-8 text");  // above U+10FFFF
  CHECK(complaint("# \xe2\x82\n") == "t.yaml:1:3: not UTF-8 text");          // a continuation is missing
  CHECK(complaints("# \xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82\ntask: {}\n").empty());
  CHECK(complaints("\xef\xbb\xbftask: {}\n").empty());  // a byte order mark
}

TEST_CASE("control characters and tabs in the indentation are refused", "[config]") {
  CHECK(complaint("task: {}\nda\x04ta: 3\n") == "t.yaml:2:3: a control character, 0x04");
  CHECK(complaint(std::string("task: {}\n\0", 10)) == "t.yaml:2:1: a control character, 0x00");
  CHECK(complaint("task:\n  \tname: copy\n") == "t.yaml:2:3: a tab; YAML is indented with spaces");
  CHECK(complaints("task: {}\t# fine\n").empty());
}

TEST_CASE("line ends may be those of Windows", "[config]") {
  CHECK(parse_config("train:\r\n  steps: 7\r\n  batch: 8\r\n", "t.yaml").train.steps == 7);
  CHECK_THAT(complaint("train:\r\n  steps: 7\r\n  heads: 8\r\n"), StartsWith("t.yaml:3:3: train.heads:"));
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
    CHECK_THAT(complaint(text), EndsWith("not valid YAML: nested too deeply"));
  CHECK_THAT(complaint(std::string(400, '[') + "1" + std::string(400, ']')), EndsWith("not a list"));
}

TEST_CASE("a report shows the first hundred problems", "[config]") {
  std::string many;
  for (int i = 0; i < 103; ++i) many += fmt::format("k{}: 1\n", i);
  const std::string all = complaints(many);
  CHECK_THAT(all, StartsWith("t.yaml: 103 problems\n"));
  CHECK_THAT(all, ContainsSubstring("\nt.yaml:100:1: k99: "));
  CHECK_THAT(all, EndsWith("\nand 3 more"));
  CHECK_THAT(complaints(many.substr(0, many.find("k100"))), !ContainsSubstring(" more"));
}

TEST_CASE("flow maps have right columns", "[config]") {
  CHECK(complaints("train:\n  optimizer: {name: adm, lr: 5e-4, beta1: 2}\n") ==
        "t.yaml: 2 problems\n"
        "t.yaml:2:21: train.optimizer.name: must be one of adam, adamw, sgd, not adm, did you mean adam?\n"
        "t.yaml:2:43: train.optimizer.beta1: must be a number of at least 0 and below 1, not 2");
}

TEST_CASE("all problems are told at once, in the order of the file, then of the command line", "[config]") {
  CHECK(complaints("train: {shards: 4, batch: 2}\n"
                   "model:\n"
                   "  heads: 3\n"
                   "  d_model: 32\n"
                   "  num_layers: 2\n"
                   "task: {name: nothing}\n",
                   {"train.steps=0", "data.train=many"}) ==
        "t.yaml: 6 problems\n"
        "t.yaml:1:17: train.shards: 4 shards of a batch of 2 would leave some empty\n"
        "t.yaml:3:10: model.heads: 3 heads do not divide a d_model of 32; change one, or set "
        "model.attention.d_key and d_value\n"
        "t.yaml:5:3: model.num_layers: unknown key, did you mean model.layers?\n"
        "t.yaml:6:14: task.name: must be one of " +
            all_tasks() +
            ", not nothing\n"
            "command line: train.steps=0: must be an integer from 1 to 1000000000, not 0\n"
            "command line: data.train=many: must be an integer from 0 to 1000000000, not many");
}

TEST_CASE("a problem says which key, where and which rule", "[config]") {
  const auto all = problems("model: {layers: x}\ntrian: {}\n", {"train.steps=0", "model.heads=3"});
  REQUIRE(all.size() == 4);
  CHECK((all[0].key == "model.layers" && all[0].rule == "must be an integer from 1 to 128, not x"));
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

TEST_CASE("a file that cannot be parsed raises no conflicts", "[config]") {
  CHECK_THAT(complaint("task: {", {"model.heads=3"}), StartsWith("t.yaml:1:1: not valid YAML: "));
}
