// Paths: their base folder, invalid ones, and dumps.
#include <filesystem>

#include "catch.h"
#include "config_problems.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "train/config/dump.h"
#include "train/config/reader.h"

using namespace thimble;
using namespace thimble::config;

namespace {

// A section that consists of a path.
struct OnePath {
  std::string path;
  Section root{{{"file", "an example", Path{&path}}}};
};

std::string read(const std::string& yaml, const std::string& name = "/data/t.yaml") {
  OnePath example;
  Report report(name);
  read_yaml(yaml, example.root, report);
  report.finish();
  return example.path;
}

bool is_refused(const std::string& value) {
  const auto found = problems_of([&] { read("file: " + value + "\n", "t.yaml"); });
  return places(found) == std::vector<std::string>{value.empty() || value == "~" ? "1:1 file" : "1:7 file"};
}

}  // namespace

TEST_CASE("a relative path starts at the folder of the config that names it", "[config]") {
  CHECK(read("file: a.tsv") == "/data/a.tsv");
  CHECK(read("file: ../x/./a.tsv") == "/x/a.tsv");
  CHECK(read("file: /a/b.tsv") == "/a/b.tsv");
  const std::string here = std::filesystem::current_path();
  CHECK(read("file: a.tsv", "t.yaml") == here + "/a.tsv");
  CHECK(read("file: a.tsv", "configs/t.yaml") == here + "/configs/a.tsv");
  CHECK(read("{}").empty());
}

TEST_CASE("each key of a file sets its own variable", "[config]") {
  Config config;
  Report report("/data/t.yaml");
  read_yaml("task: {file: a, validation_file: b, test_file: c, vocabulary_file: d}", describe(config),
            report);
  CHECK_NOTHROW(report.finish());
  const TaskConfig& task = config.task;
  CHECK((task.file == "/data/a" && task.validation_file == "/data/b"));
  CHECK((task.test_file == "/data/c" && task.vocabulary_file == "/data/d"));
}

TEST_CASE("a file for a task that reads none is refused", "[config]") {
  CHECK(place("task: {file: a}") == "1:14 task.file");
}

TEST_CASE("a relative path on the command line starts at the current folder", "[config]") {
  OnePath example;
  Report report("/data/t.yaml");
  read_override("file=a.tsv", 1, example.root, report);
  CHECK_NOTHROW(report.finish());
  CHECK(example.path == std::filesystem::current_path().string() + "/a.tsv");
}

TEST_CASE("an empty path, a control character and values that are not text are refused", "[config]") {
  for (const char* value : {"\"\"", "\"a\\nb\"", "\"a\\x7fb\"", "[a]", "", "~"}) {
    INFO(value);
    CHECK(is_refused(value));
  }
  CHECK_THROWS_AS(read("file: a", "/\xff/t.yaml"), ConfigError);  // a folder that is no text
}

TEST_CASE("a dump gives every path back", "[config]") {
  for (const std::string path : {"/a",          "/data/a-b_c.1+2/x.tsv",
                                 "/a: b",       "/a #b",
                                 "/a b",        " /a",
                                 "/a ",         "/it's",
                                 "/say \"hi\"", "/a\\b",
                                 "/a,b]",       "/\u00e9t\u00e9/\u4e2d\u6587/\U0001F642",
                                 "/2024",       "/true",
                                 "/null",       "/~",
                                 "/*x",         "/&x",
                                 "/%x",         "/a:"}) {
    INFO(path);
    OnePath example;
    example.path = path;
    // A folder that would show if the leading slash got lost.
    const std::string wanted = path[0] == '/' ? path : "/data/" + path;
    CHECK(read(yaml(example.root)) == wanted);
    CHECK(read(json_text(json(example.root))) == wanted);
  }
}

TEST_CASE("what YAML may take for something else is dumped in quotes", "[config]") {
  OnePath example;
  for (const std::string path :
       {"2024", "1e3", "0x10", "null", "~", "true", "no", "-", ".inf", "/a: b", "/a #b", "/a ", "/\u00e9"}) {
    example.path = path;
    CHECK(yaml(example.root) == "file: \"" + path + "\"\n");
  }
  example.path = "/data/a-b_c.tsv";
  CHECK(yaml(example.root) == "file: /data/a-b_c.tsv\n");
}

TEST_CASE("no path, no line", "[config]") {
  OnePath example;
  CHECK(yaml(example.root).empty());
  CHECK(json(example.root).empty());
}
