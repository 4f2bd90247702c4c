// Differences between configs, and keys that may change when a run is resumed.
#include <algorithm>

#include "catch.h"
#include "thimble/train/json.h"
#include "train/config/differences.h"
#include "train/config/fields.h"

using namespace thimble;

namespace {

std::vector<std::string> texts(const Config& a, const Config& b) {
  std::vector<std::string> out;
  for (const Difference& difference : differences(a, b, "the run", "new.yaml"))
    out.push_back(difference.text);
  return out;
}

}  // namespace

TEST_CASE("equal configs have no differences", "[config]") { CHECK(texts({}, {}).empty()); }

TEST_CASE("each value that differs is reported, in the order of the field lists", "[config]") {
  Config a, b;
  b.model.norm = NormOrder::pre;
  a.model.norm = NormOrder::post;
  b.train.steps = 2000;
  b.train.optimizer.lr = 0.0005;
  b.train.checkpoint_series = true;
  CHECK(texts(a, b) == std::vector<std::string>{
                           "model.norm: post in the run, pre in new.yaml",
                           "train.steps: 1000 in the run, 2000 in new.yaml",
                           "train.optimizer.lr: 0.001 in the run, 0.0005 in new.yaml",
                           "train.checkpoint_series: false in the run, true in new.yaml",
                       });
  CHECK(differences(a, b, "", "").at(2).key == "train.optimizer.lr");
}

TEST_CASE("numbers that differ in their last bit differ", "[config]") {
  Config a, b;
  a.model.dropout = 0.1 + 0.2;
  b.model.dropout = 0.3;
  CHECK(texts(a, b) ==
        std::vector<std::string>{"model.dropout: 0.30000000000000004 in the run, 0.3 in new.yaml"});
}

TEST_CASE("a key that only one of the tasks reads is no difference", "[config]") {
  Config a, b;
  b.task.file = "/a";
  CHECK(texts(a, b).empty());
  Config file, no_file;
  file.task.name = no_file.task.name = "file";
  file.task.file = "/a";
  CHECK(texts(file, no_file) == std::vector<std::string>{"task.file: /a in the run, none in new.yaml"});
  b.task.name = "shift";
  b.task.offset = 3;
  const std::vector<std::string> names{"task.name: reverse in the run, shift in new.yaml"};
  CHECK(texts(a, b) == names);
  CHECK(texts(b, a).size() == 1);
}

TEST_CASE("what may change on a resume", "[config]") {
  Config config;
  const config::Section root = config::describe(config);
  std::vector<std::string> found;
  for (const config::Named& named : config::flatten(root))
    if (named.field->may_change) found.push_back(named.path);
  CHECK(found == std::vector<std::string>{"task.file", "task.validation_file", "task.test_file",
                                          "task.vocabulary_file", "train.steps", "train.threads",
                                          "train.evaluate_every", "train.sample_every",
                                          "train.target.accuracy", "train.target.loss", "train.patience",
                                          "train.checkpoint_every", "train.checkpoint_series"});
  Config longer;
  longer.train.steps = 2000;
  longer.train.batch = 64;
  const auto both = differences({}, longer, "", "");
  REQUIRE(both.size() == 2);
  CHECK((both[0].key == "train.steps" && both[0].may_change));
  CHECK((both[1].key == "train.batch" && !both[1].may_change));
}

TEST_CASE("a key that version 0.3.0 does not have counts only where it is not its default", "[config]") {
  Config c;
  c.task.name = "file";
  CHECK(fixed_values(c).find("skip_empty") == std::string::npos);
  CHECK(fixed_values(c).find("task.max_tokens: 0\n") != std::string::npos);
  CHECK(fixed_values(c).find("task.input_tokens: spaces\n") != std::string::npos);
  CHECK(to_yaml(c).find("skip_empty") == std::string::npos);
  CHECK_FALSE(hashed_values(c).at("task").contains("skip_empty"));
  CHECK(to_json(c).at("task").at("skip_empty") == false);
  c.task.options.skip_empty = true;
  CHECK(to_yaml(c).find("  skip_empty: true\n") != std::string::npos);
  CHECK(hashed_values(c).at("task").at("skip_empty") == true);
  CHECK(fixed_values(c).find("task.skip_empty: true\n") != std::string::npos);
}
