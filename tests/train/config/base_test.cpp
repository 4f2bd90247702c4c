// Configs that build on other files, and where each value comes from.
#include <fstream>

#include "catch.h"
#include "problems.h"
#include "thimble/engine/error.h"
#include "thimble/train/config.h"
#include "thimble/train/json.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace {

using Texts = std::vector<std::string>;

// Files of one folder, removed with the object.
struct Files {
  Files(std::initializer_list<std::pair<std::string, std::string>> files) {
    for (const auto& [name, text] : files) write(name, text);
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  ResolvedConfig resolve(const std::string& name, const std::vector<std::string>& overrides = {}) const {
    return load_config(folder / name, overrides);
  }
  Config load(const std::string& name) const { return resolve(name); }

  // Returns "a.yaml:2:17 model.layers" for each problem.
  Texts problems(const std::string& name, const std::vector<std::string>& overrides = {}) const {
    Texts out;
    for (const ConfigProblem& problem : problems_of([&] { resolve(name, overrides); })) {
      const std::filesystem::path file = problem.location.source;
      const bool is_argument = problem.location.argument > 0;
      out.push_back((is_argument ? "" : file.lexically_relative(folder.path()).string() + ":") +
                    place(problem));
    }
    return out;
  }

  TemporaryDirectory folder;
};

}  // namespace

TEST_CASE("a file overwrites its base key by key, the command line both", "[config]") {
  const Files files{{"a.yaml", "model: {layers: 2}\nbase: b.yaml\n"},  // wherever it stands
                    {"b.yaml", "model: {layers: 3, heads: 4, d_ff: 100}\n"}};
  const ModelConfig model = files.resolve("a.yaml", {"model.d_ff=200"}).model;
  CHECK((model.layers == 2 && model.heads == 4 && model.d_ff == 200 && model.d_model == 32));
}

TEST_CASE("a base may have a base, each relative to the file that names it", "[config]") {
  const Files files{{"x/a.yaml", "base: ../y/b.yaml\n"},
                    {"y/b.yaml", "base: z/c.yaml\ntrain: {steps: 7}\n"},
                    {"y/z/c.yaml", "train: {steps: 8, batch: 9}\n"}};
  const Config config = files.load("x/a.yaml");
  CHECK((config.train.steps == 7 && config.train.batch == 9));
  const Files absolute{{"a.yaml", "base: " + (files.folder / "y/b.yaml").string() + "\n"}};
  CHECK(absolute.load("a.yaml").train.batch == 9);
}

TEST_CASE("the problems of all files are reported at once, each at its place", "[config]") {
  const Files files{{"a.yaml", "base: b.yaml\nmodel: {layers: x}\n"},
                    {"b.yaml", "base: c.yaml\n\nmodel: {layers: y, head: 3}\n"},
                    {"c.yaml", "train:\n  steps: 0\n  steps: 1\n"}};
  CHECK(files.problems("a.yaml", {"model.layers=z"}) ==
        Texts{"a.yaml:2:17 model.layers", "b.yaml:3:17 model.layers", "b.yaml:3:20 model.head",
              "c.yaml:2:10 train.steps", "c.yaml:3:3 train.steps", "argument 1 model.layers"});
}

TEST_CASE("keys may repeat between files, not in one", "[config]") {
  const Files files{{"a.yaml", "base: b.yaml\ntrain: {steps: 7}\n"}, {"b.yaml", "train: {steps: 8}\n"}};
  CHECK(files.load("a.yaml").train.steps == 7);
  files.write("b.yaml", "train: {steps: 8, steps: 8}\n");
  CHECK(files.problems("a.yaml") == Texts{"b.yaml:1:19 train.steps"});
  files.write("a.yaml", "base: b.yaml\nbase: b.yaml\n");
  files.write("b.yaml", "{}");
  CHECK(files.problems("a.yaml") == Texts{"a.yaml:2:1 base"});
}

TEST_CASE("a conflict between files is placed in the one that has the last word", "[config]") {
  const Files files{{"a.yaml", "base: b.yaml\nmodel: {d_model: 32}\n"},
                    {"b.yaml", "model: {d_model: 15, heads: 5}\n"}};
  CHECK(files.problems("a.yaml") == Texts{"a.yaml:2:18 model.d_model"});
  files.write("a.yaml", "base: b.yaml\n");
  files.write("b.yaml", "model: {d_model: 32, heads: 5}\n");
  CHECK(files.problems("a.yaml") == Texts{"b.yaml:1:29 model.heads"});
}

TEST_CASE("a base that cannot be read is reported where it is named, once", "[config]") {
  const Files files{{"a.yaml", "model: {layers: x}\nbase: no.yaml\ndata: {train: 64}\n"}};
  CHECK(files.problems("a.yaml") == Texts{"a.yaml:1:17 model.layers", "a.yaml:2:7 base"});
  files.write("a.yaml", "base: sub\n");
  files.write("sub/b.yaml", "base: ..\n");
  CHECK(files.problems("a.yaml") == Texts{"a.yaml:1:7 base"});
  CHECK(files.problems("sub/b.yaml") == Texts{"sub/b.yaml:1:7 base"});
}

TEST_CASE("a base that is no config is reported as any config", "[config]") {
  const Files files{{"a.yaml", "base: b.yaml\ndata: {train: 64}\n"}, {"b.yaml", "# nothing\n"}};
  CHECK(files.problems("a.yaml") == Texts{"b.yaml:1:1"});
  for (const char* text : {"model: {\n", "model: {}\n\xff", "model: {}\n\t\n---\n", "\n- 1\n"}) {
    files.write("b.yaml", text);
    CHECK(files.problems("a.yaml") == Texts{"b.yaml:2:1"});
  }
  files.write("b.yaml", "model: &m {}\ndata: *m\n");
  CHECK(files.problems("a.yaml") == Texts{"b.yaml:2:7"});
}

TEST_CASE("files that build on each other in a circle are refused", "[config]") {
  const Files files{
      {"a.yaml", "base: a.yaml\n"}, {"b.yaml", "base: c.yaml\n"}, {"c.yaml", "base: ./x/../b.yaml\n"}};
  std::filesystem::create_directory(files.folder / "x");
  CHECK(files.problems("a.yaml") == Texts{"a.yaml:1:7 base"});
  CHECK(files.problems("b.yaml") == Texts{"c.yaml:1:7 base"});
  std::filesystem::create_symlink(files.folder / "c.yaml", files.folder / "link.yaml");
  files.write("b.yaml", "base: link.yaml\n");
  CHECK(files.problems("b.yaml") == Texts{"link.yaml:1:7 base"});
}

TEST_CASE("eight files may build on each other, not nine", "[config]") {
  const Files files{{"1.yaml", "train: {steps: 7}\n"}};
  for (int i = 2; i <= 9; ++i) files.write(fmt::format("{}.yaml", i), fmt::format("base: {}.yaml\n", i - 1));
  CHECK(files.load("8.yaml").train.steps == 7);
  CHECK(files.problems("9.yaml") == Texts{"2.yaml:1:7 base"});
}

TEST_CASE("a base is the path of a file", "[config]") {
  const Files files{{"a.yaml", ""}};
  for (const char* value : {"[b]", "{b: c}", "\"a\\nb\""}) {
    files.write("a.yaml", fmt::format("base: {}\n", value));
    CHECK(files.problems("a.yaml") == Texts{"a.yaml:1:7 base"});
  }
  files.write("a.yaml", "base:\n");
  CHECK(files.problems("a.yaml") == Texts{"a.yaml:1:1 base"});
}

TEST_CASE("every value that is set has an origin", "[config]") {
  const Files files{{"a.yaml", "base: b.yaml\nmodel:\n  layers: 2\n"},
                    {"b.yaml", "\nmodel: {layers: 3, heads: 4}\n"}};
  const ResolvedConfig resolved = files.resolve("a.yaml", {"train.steps=9", "train.steps=8"});
  const auto origin = [&](const std::string& key) {
    const SourceLocation& o = resolved.origins.at(key);
    return fmt::format("{}:{}", std::filesystem::path(o.source).filename().string(), o.line);
  };
  CHECK(origin("model.layers") == "a.yaml:3");
  CHECK(origin("model.heads") == "b.yaml:2");
  CHECK(origin("train.steps") == "train.steps=8:0");
  CHECK(resolved.origins.at("train.steps").argument == 2);
  CHECK_FALSE(resolved.origins.contains("train.batch"));
}

TEST_CASE("YAML with origins: aligned comments, the same config, no base", "[config]") {
  ResolvedConfig resolved;
  resolved.train.steps = 7;
  resolved.model.layers = 3;
  resolved.origins = {{"train.steps", {"a.yaml", 12}},
                      {"model.layers", {.source = "model.layers=3", .argument = 1}}};
  const std::string yaml = to_annotated_yaml(resolved);
  CHECK_THAT(yaml, StartsWith("task:\n  name: reverse             # default\n  symbols: 10"));
  CHECK_THAT(yaml, ContainsSubstring("\n  steps: 7                  # a.yaml:12\n"));
  CHECK_THAT(yaml, ContainsSubstring("\n  layers: 3                 # command line\n"));
  CHECK_THAT(yaml, !ContainsSubstring("\nbase"));
  CHECK(to_yaml(parse_config(yaml, "t.yaml")) == to_yaml(resolved));
  CHECK_THAT(to_yaml(resolved), !ContainsSubstring("#"));
}

TEST_CASE("a line with an origin fits 80 columns if leaving the folder out helps", "[config]") {
  ResolvedConfig resolved;
  const auto origin_of_steps = [&](const std::string& file) {
    resolved.origins = {{"train.steps", {file, 1}}};
    const std::string yaml = to_annotated_yaml(resolved);
    const std::size_t start = yaml.find("# ", yaml.find("  steps:")) + 2;
    return yaml.substr(start, yaml.find('\n', start) - start);
  };
  const std::string fits = std::string(40, 'd') + "/a.yaml", long_one = std::string(60, 'd') + "/a.yaml";
  CHECK(origin_of_steps(fits) == fits + ":1");
  CHECK(origin_of_steps(long_one) == "a.yaml:1");
  CHECK(origin_of_steps("a\nb: c.yaml") == "a config file:1");  // or the comment would end
}
