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
      complaint("train: {qqq: 3}\n") ==
      "t.yaml:1:9: train.qqq: unknown key, must be one of steps, batch, seed, shards, threads, precision, "
      "optimizer, schedule, clip_norm, label_smoothing, evaluate_every, target, patience, checkpoint_every, "
      "checkpoint_series, log_heads");
  CHECK(complaint("xyz: 1\n") ==
        "t.yaml:1:1: xyz: unknown key, must be one of base, task, data, model, train");
}

TEST_CASE("the very name in another section goes before a similar one in this", "[config]") {
  CHECK(complaint("d_model: 8\n") == "t.yaml:1:1: d_model: unknown key, did you mean model.d_model?");
}

TEST_CASE("names of other tools lead to the key that means the same", "[config]") {
  const std::pair<std::string, std::string> names[] = {
      {"batch_size", "train.batch"},           {"n_heads", "model.heads"},
      {"num_layers", "model.layers"},          {"hidden_size", "model.d_model"},
      {"learning_rate", "train.optimizer.lr"}, {"max_grad_norm", "train.clip_norm"}};
  for (const auto& [name, key] : names) {
    CHECK(complaint(name + ": 1\n") == "t.yaml:1:1: " + name + ": unknown key, did you mean " + key + "?");
    CHECK_THAT(complaint("train: {" + name + ": 1}\n"), EndsWith("did you mean " + key + "?"));
  }
}

TEST_CASE("a name of other tools without a counterpart says what to do instead", "[config]") {
  CHECK(complaint("train: {epochs: 3}\n") ==
        "t.yaml:1:9: train.epochs: unknown key; training is counted in steps: set train.steps; data.train / "
        "train.batch of them are an epoch");
  CHECK(
      complaint("device: cuda\n") ==
      "t.yaml:1:1: device: unknown key; training runs on the CPU; train.threads sets how many cores it uses");
}

TEST_CASE("every key that the name of another tool leads to is there", "[config]") {
  for (const std::string name : {"batch_size",
                                 "train_batch_size",
                                 "per_device_train_batch_size",
                                 "max_steps",
                                 "num_steps",
                                 "max_iters",
                                 "learning_rate",
                                 "max_grad_norm",
                                 "grad_clip",
                                 "gradient_clip_val",
                                 "warmup_steps",
                                 "lr_scheduler",
                                 "lr_scheduler_type",
                                 "eval_steps",
                                 "eval_interval",
                                 "save_steps",
                                 "dtype",
                                 "num_threads",
                                 "n_heads",
                                 "n_head",
                                 "num_heads",
                                 "num_attention_heads",
                                 "num_key_value_heads",
                                 "n_layers",
                                 "n_layer",
                                 "num_layers",
                                 "num_hidden_layers",
                                 "hidden_size",
                                 "hidden_dim",
                                 "embed_dim",
                                 "n_embd",
                                 "intermediate_size",
                                 "dim_feedforward",
                                 "d_mlp",
                                 "d_head",
                                 "head_dim",
                                 "max_position_embeddings",
                                 "max_seq_len",
                                 "block_size",
                                 "n_ctx",
                                 "seq_len"}) {
    const std::string text = complaint(name + ": 1\n"), start = "did you mean ";
    REQUIRE_THAT(text, ContainsSubstring(start) && EndsWith("?"));
    const std::size_t from = text.find(start) + start.size();
    const std::string key = text.substr(from, text.size() - 1 - from);
    CHECK_THAT(complaint("{}", {key + "=,"}), !ContainsSubstring("unknown key"));
  }
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
