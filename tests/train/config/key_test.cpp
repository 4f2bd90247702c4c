// Keys: unknown, duplicate and misplaced ones, and suggestions for them.
#include "catch.h"
#include "config_problems.h"
#include "train/config/report.h"
#include "train/config/suggest.h"

using namespace thimble;

namespace {

// Returns the key that a message suggests.
std::string suggestion(const std::string& yaml) {
  const std::string rule = problem(yaml).rule, start = "did you mean ";
  const std::size_t at = rule.find(start);
  if (at == std::string::npos) return "";
  return rule.substr(at + start.size(), rule.rfind('?') - at - start.size());
}

}  // namespace

TEST_CASE("an unknown key is placed and the nearest key suggested", "[config]") {
  const std::string heads = "model:\n  d_model: 32\n  num_head: 4\n";
  CHECK(place(heads) == "3:3 model.num_head");
  CHECK(suggestion(heads) == "model.heads");
  CHECK(place("trian: {steps: 3}\n") == "1:1 trian");
  CHECK(suggestion("trian: {steps: 3}\n") == "train");
  const std::string lr = "train:\n  optimizer: {name: adam, Lrr: 5e-4}\n";
  CHECK(place(lr) == "2:27 train.optimizer.Lrr");
  CHECK(suggestion(lr) == "train.optimizer.lr");
}

TEST_CASE("a key of another section is suggested with its full path", "[config]") {
  CHECK(suggestion("heads: 4\n") == "model.heads");
  CHECK(suggestion("train: {lr: 1}\n") == "train.optimizer.lr");
  CHECK(suggestion("model: {mask: causal}\n") == "model.attention.mask");
}

TEST_CASE("of several equal keys the nearest in the tree is suggested", "[config]") {
  CHECK(suggestion("train: {name: adam}\n") == "train.optimizer.name");
  CHECK(suggestion("name: copy\n") == "task.name");
  CHECK(suggestion("dropout: 0.1\n") == "model.dropout");
}

TEST_CASE("the very name in another section goes before a similar one in this", "[config]") {
  CHECK(suggestion("d_model: 8\n") == "model.d_model");
}

TEST_CASE("names of other tools lead to the key that means the same", "[config]") {
  const std::pair<std::string, std::string> names[] = {{"batch_size", "train.batch"},
                                                       {"n_heads", "model.heads"},
                                                       {"num_layers", "model.layers"},
                                                       {"hidden_size", "model.d_model"},
                                                       {"learning_rate", "train.optimizer.lr"},
                                                       {"max_grad_norm", "train.clip_norm"},
                                                       {"dropout_rate", "model.dropout"},
                                                       {"weight_decay", "train.optimizer.weight_decay"},
                                                       {"max_seq_len", "model.max_length"},
                                                       {"num_heads", "model.heads"},
                                                       {"n_layers", "model.layers"}};
  for (const auto& [name, key] : names) {
    CHECK(suggestion(name + ": 1\n") == key);
    CHECK(suggestion("train: {" + name + ": 1}\n") == key);
  }
}

TEST_CASE("every name of another tool leads to a key that exists", "[config]") {
  Config config;
  const config::Section root = config::describe(config);
  const auto all = config::flatten(root);
  for (const auto& [name, path] : config::other_names()) {
    INFO(name);
    CHECK(std::ranges::count(all, path, &config::Named::path) == 1);
    CHECK(suggestion(fmt::format("{}: 1\n", name)) == path);
  }
}

TEST_CASE("a duplicate key is refused", "[config]") {
  CHECK(place("model:\n  heads: 2\n  layers: 1\n  heads: 2\n") == "4:3 model.heads");
  CHECK(place("task: {}\ndata: {}\ntask: {}\n") == "3:1 task");
  CHECK(place("model: {heads: 2, \"heads\": 4}\n") == "1:19 model.heads");
  CHECK(places(problems("x: 1\nx: 1\n")) == std::vector<std::string>{"1:1 x", "2:1 x"});
}

TEST_CASE("a key must be a name", "[config]") {
  CHECK(place("model: {{a: b}: 3}\n") == "1:9 model.?");
  CHECK(place("3: 3\n") == "1:1 3");
  CHECK(place("true: 3\n") == "1:1 true");
}

TEST_CASE("merge keys are unknown keys", "[config]") {
  CHECK(place("model:\n  <<: {heads: 1}\n") == "2:3 model.<<");
  CHECK(place("model: &m {heads: 1}\ndata:\n  <<: *m\n") == "3:7");
}

TEST_CASE("a long key is cut in the report", "[config]") {
  CHECK_THAT(config::problem_text(problem("? " + std::string(100'000, 'x') + "\n: 3\n")),
             StartsWith("t.yaml:1:3: " + std::string(80, 'x') + "...: "));
}

TEST_CASE("control characters in a key do not break the report into lines", "[config]") {
  CHECK_THAT(config::problem_text(problem("\"a\\nb\\e[1m\": 3\n")), StartsWith("t.yaml:1:1: a b [1m: "));
}

TEST_CASE("a misspelled key raises no conflict of the key that was meant", "[config]") {
  CHECK(place("data: {train: 64}\ntrain: {btach: 32}\n") == "2:9 train.btach");
  CHECK(place("data: {train: 64}\ntrain: {batch: x}\n") == "2:16 train.batch");
  CHECK(place("data: {train: 64}\ntrain: 7\n") == "2:8 train");
  CHECK(place("data: {train: 64}\nxyz: 7\ntrain: {batch: 64}\n") == "2:1 xyz");
}
