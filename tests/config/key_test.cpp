// Keys: unknown, repeated, misplaced, and what is suggested for them.
#include "catch.h"
#include "complaints.h"

TEST_CASE("an unknown key is placed and the nearest key suggested", "[config]") {
  CHECK(complaint("model:\n  d_model: 32\n  num_head: 4\n") ==
        "t.yaml:3:3: model.num_head: unknown key, did you mean model.heads?");
  CHECK(complaint("trian: {steps: 3}\n") == "t.yaml:1:1: trian: unknown key, did you mean train?");
  CHECK(complaint("train:\n  optimizer: {name: adam, Lrr: 5e-4}\n") ==
        "t.yaml:2:27: train.optimizer.Lrr: unknown key, did you mean train.optimizer.lr?");
}

TEST_CASE("a key of another section is suggested with its full path", "[config]") {
  CHECK(complaint("heads: 4\n") == "t.yaml:1:1: heads: unknown key, did you mean model.heads?");
  CHECK(complaint("train: {lr: 1}\n") ==
        "t.yaml:1:9: train.lr: unknown key, did you mean train.optimizer.lr?");
  CHECK(complaint("model: {mask: causal}\n") ==
        "t.yaml:1:9: model.mask: unknown key, did you mean model.attention.mask?");
}

TEST_CASE("of several equal keys the nearest in the tree is suggested", "[config]") {
  CHECK(complaint("train: {name: adam}\n") ==
        "t.yaml:1:9: train.name: unknown key, did you mean train.optimizer.name?");
  CHECK(complaint("name: copy\n") == "t.yaml:1:1: name: unknown key, did you mean task.name?");
  CHECK(complaint("dropout: 0.1\n") == "t.yaml:1:1: dropout: unknown key, did you mean model.dropout?");
}

TEST_CASE("an unknown key that resembles none comes with the keys of its section", "[config]") {
  CHECK(
      complaint("train: {epochs: 3}\n") ==
      "t.yaml:1:9: train.epochs: unknown key, must be one of steps, batch, seed, shards, threads, precision, "
      "optimizer, schedule, clip_norm, label_smoothing, evaluate_every, target, patience, checkpoint_every, "
      "checkpoint_series, watch_heads");
  CHECK(complaint("xyz: 1\n") ==
        "t.yaml:1:1: xyz: unknown key, must be one of base, task, data, model, train");
}

TEST_CASE("a dotted key in a file is explained", "[config]") {
  CHECK(complaint("model.layers: 3\n") ==
        "t.yaml:1:1: model.layers: unknown key; write it as nested maps, without dots");
}

TEST_CASE("a repeated key is refused, with the line of the first", "[config]") {
  CHECK(complaint("model:\n  heads: 2\n  layers: 1\n  heads: 2\n") ==
        "t.yaml:4:3: model.heads: repeated key, first on line 2");
  CHECK(complaint("task: {}\ndata: {}\ntask: {}\n") == "t.yaml:3:1: task: repeated key, first on line 1");
  CHECK(complaint("model: {heads: 2, \"heads\": 4}\n") ==
        "t.yaml:1:19: model.heads: repeated key, first on line 1");
  CHECK_THAT(complaints("x: 1\nx: 1\n"), ContainsSubstring("\nt.yaml:2:1: x: repeated key, first on line 1"));
}

TEST_CASE("a key must be a name", "[config]") {
  CHECK(complaint("[a, b]: 3\n") == "t.yaml:1:1: ?: a key must be a name, not a list");
  CHECK(complaint("model: {{a: b}: 3}\n") == "t.yaml:1:9: model.?: a key must be a name, not a map");
  CHECK(complaint("~: 3\n") == "t.yaml:1:1: ?: a key must be a name, not empty");
  CHECK_THAT(complaint("3: 3\n"), StartsWith("t.yaml:1:1: 3: unknown key"));
  CHECK_THAT(complaint("true: 3\n"), StartsWith("t.yaml:1:1: true: unknown key"));
}

TEST_CASE("merge keys are unknown keys", "[config]") {
  CHECK_THAT(complaint("model:\n  <<: {heads: 1}\n"), StartsWith("t.yaml:2:3: model.<<: unknown key"));
  CHECK(complaint("model: &m {heads: 1}\ndata:\n  <<: *m\n") ==
        "t.yaml:3:7: an alias; write the value itself");
}

TEST_CASE("a long key is cut in the report", "[config]") {
  CHECK_THAT(complaint("? " + std::string(100'000, 'x') + "\n: 3\n"),
             StartsWith("t.yaml:1:3: " + std::string(80, 'x') + "...: unknown key"));
}

TEST_CASE("control characters in a key do not break the report into lines", "[config]") {
  CHECK_THAT(complaint("\"a\\nb\\e[1m\": 3\n"), StartsWith("t.yaml:1:1: a b [1m: unknown key"));
}

TEST_CASE("a key that stands for another raises no follow-on conflict", "[config]") {
  CHECK(complaint("data: {train: 64}\ntrain: {btach: 32}\n") ==
        "t.yaml:2:9: train.btach: unknown key, did you mean train.batch?");
  CHECK(complaint("data: {train: 64}\ntrain: {batch: x}\n") ==
        "t.yaml:2:16: train.batch: must be an integer from 1 to 65536, not x");
  CHECK_THAT(complaint("data: {train: 64}\ntrain: 7\n"), StartsWith("t.yaml:2:8: train: must be a map"));
  CHECK_THAT(complaint("data: {train: 64}\nxyz: 7\ntrain: {batch: 64}\n"),
             StartsWith("t.yaml:2:1: xyz: unknown"));
}
