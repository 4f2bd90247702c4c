// Rules about several keys at once.
#include "catch.h"
#include "complaints.h"

TEST_CASE("heads must divide d_model, unless both widths of a head are given", "[config]") {
  const std::string remedy = "; change one, or set model.attention.d_key and d_value";
  CHECK(complaint("model: {d_model: 48, heads: 5}") ==
        "t.yaml:1:29: model.heads: 5 heads do not divide a d_model of 48" + remedy);
  CHECK(complaint("model: {heads: 64}") ==
        "t.yaml:1:16: model.heads: 64 heads do not divide a d_model of 32" + remedy);
  CHECK(complaints("model: {d_model: 48, heads: 6}").empty());
  CHECK(complaints("model: {d_model: 48, heads: 5, attention: {d_key: 8, d_value: 9}}").empty());
  for (const char* width : {"d_key", "d_value"})
    CHECK_THAT(complaint(fmt::format("model: {{d_model: 48, heads: 5, attention: {{{}: 8}}}}", width)),
               ContainsSubstring("5 heads do not divide"));
}

TEST_CASE("heads share keys and values evenly", "[config]") {
  CHECK(complaint("model: {heads: 4, attention: {kv_heads: 3}}") ==
        "t.yaml:1:41: model.attention.kv_heads: 4 heads cannot share 3 keys and values evenly; let kv_heads "
        "divide heads");
  CHECK(complaints("model: {heads: 4, attention: {kv_heads: 2}}").empty());
}

TEST_CASE("tied queries and keys are as many", "[config]") {
  CHECK(complaint("model: {heads: 4, attention: {tie_query_key: true, kv_heads: 2}}") ==
        "t.yaml:1:46: model.attention.tie_query_key: tied queries and keys need a key for each of 4 heads; "
        "leave kv_heads at 0");
  CHECK(complaints("model: {heads: 4, attention: {tie_query_key: true, kv_heads: 4}}").empty());
}

TEST_CASE("rotary positions turn pairs of columns, for plain products", "[config]") {
  CHECK(complaint("model: {d_model: 10, heads: 2, positions: rotary}") ==
        "t.yaml:1:43: model.positions: rotary positions turn pairs of a head's 5 columns; set "
        "model.attention.d_key to an even number");
  CHECK(complaints("model: {d_model: 10, heads: 2, positions: rotary, attention: {d_key: 4}}").empty());
  for (const char* score : {"general", "additive"})
    CHECK(complaint(fmt::format("model: {{positions: rotary, attention: {{score: {}}}}}", score)) ==
          "t.yaml:1:20: model.positions: rotary positions require the score scaled_dot or dot; choose one of "
          "them, or other positions");
  CHECK(complaints("model: {positions: alibi, attention: {score: additive}}").empty());
}

TEST_CASE("a gate needs a feed-forward net", "[config]") {
  CHECK(complaint("model: {gated: true, d_ff: 0}") ==
        "t.yaml:1:16: model.gated: there is no feed-forward net to gate; set model.d_ff, or leave gated out");
  CHECK(complaints("model: {d_ff: 0}").empty());
}

namespace {

// "model.heads" of "heads: 2", "model.attention.mask" of "attention: {mask: causal}".
std::string full_key(std::string_view yaml) {
  const auto colon = yaml.find(':'), brace = yaml.find('{');
  if (brace == std::string_view::npos) return fmt::format("model.{}", yaml.substr(0, colon));
  return fmt::format("model.{}.{}", yaml.substr(0, colon),
                     yaml.substr(brace + 1, yaml.rfind(':') - brace - 1));
}

}  // namespace

TEST_CASE("a convolution has a window and no heads, attention the other way round", "[config]") {
  CHECK(
      complaint("model: {window: 5}") ==
      "t.yaml:1:17: model.window: only a convolution has a window; set model.mixer to convolution, or leave "
      "the "
      "window out");
  CHECK(complaints("model: {mixer: convolution, window: 5}").empty());
  for (const char* key : {"heads: 2", "attention: {dropout: 0.1}", "attention: {score: dot}",
                          "attention: {combine: sum}", "attention: {tie_query_key: true}",
                          "attention: {kv_heads: 1}", "attention: {d_key: 4}", "attention: {d_value: 4}"}) {
    CAPTURE(key);
    CHECK_THAT(complaint(fmt::format("model: {{mixer: convolution, {}}}", key)),
               EndsWith(fmt::format(": {} has no effect on a convolution; remove it, or set "
                                    "model.mixer to attention",
                                    full_key(key))));
  }
  for (const char* positions : {"rotary", "alibi"})
    CHECK(
        complaint(fmt::format("model: {{mixer: convolution, positions: {}}}", positions)) ==
        "t.yaml:1:40: model.positions: these positions act in attention; choose sinusoidal, learned or none "
        "for a convolution");
  CHECK(complaint("model: {mixer: convolution}\ntrain: {log_heads: true}") ==
        "t.yaml:2:20: train.log_heads: this model has no heads to log; leave log_heads out");
}

TEST_CASE("a window has a middle, unless it ends with the position", "[config]") {
  CHECK(complaint("model: {mixer: convolution, window: 4}") ==
        "t.yaml:1:37: model.window: a window of 4 positions has no middle; make it odd, or set "
        "model.attention.mask to causal");
  CHECK(complaints("model: {mixer: convolution, window: 4, attention: {mask: causal}}").empty());
}

TEST_CASE("a conflict is placed at a key that was given, on the command line if there", "[config]") {
  CHECK(complaint("data: {train: 64}") ==
        "t.yaml:1:15: data.train: a batch of 128 is more than all 64 training sequences");
  CHECK(complaint("model: {d_model: 48, heads: 6}", {"model.d_model=32"}) ==
        "command line: model.d_model=32: 6 heads do not divide a d_model of 32; change one, or set "
        "model.attention.d_key and d_value");
}

TEST_CASE("the task must fit into the model", "[config]") {
  const std::string remedy = "; raise model.max_length, or leave it at 0";
  CHECK(complaint("task: {length: 17}\nmodel: {max_length: 16}") ==
        "t.yaml:2:21: model.max_length: the task needs sequences of 17 tokens, the model takes 16" + remedy);
  CHECK(complaints("task: {length: 17}\nmodel: {max_length: 17}").empty());
  CHECK(complaints("task: {length: 17}\nmodel: {max_length: 0}").empty());
  const std::string next =
      "task: {length: 6}\nmodel: {attention: {mask: causal}, output: {per: next}, max_length: ";
  CHECK(complaint(next + "10}") ==
        "t.yaml:2:69: model.max_length: the task needs sequences of 11 tokens, the model takes 10" + remedy);
  CHECK(complaints(next + "11}").empty());
  // A source of an encoder-decoder that is longer than what is written.
  const std::string pair = "task: {name: majority, length: 17}\nmodel: {kind: encoder_decoder, max_length: ";
  CHECK(complaint(pair + "16}") ==
        "t.yaml:2:44: model.max_length: the task needs sequences of 17 tokens, the model takes 16" + remedy);
  CHECK(complaints(pair + "17}").empty());
}

TEST_CASE("min_length is at most length", "[config]") {
  CHECK(complaint("task: {length: 6, min_length: 7}") ==
        "t.yaml:1:31: task.min_length: a min_length of 7 is more than the length, 6");
  CHECK(complaints("task: {length: 6, min_length: 6}").empty());
}

TEST_CASE("the training set holds a batch, unless it is endless", "[config]") {
  CHECK(complaint("data: {train: 64}\ntrain: {batch: 65}") ==
        "t.yaml:2:16: train.batch: a batch of 65 is more than all 64 training sequences");
  CHECK(complaints("data: {train: 64}\ntrain: {batch: 64}").empty());
  CHECK(complaints("data: {train: 0}\ntrain: {batch: 65}").empty());
}

TEST_CASE("sinusoidal positions need an even d_model", "[config]") {
  CHECK(complaint("model: {d_model: 33}") ==
        "t.yaml:1:18: model.d_model: sinusoidal positions need an even d_model, not 33");
  CHECK(complaints("model: {d_model: 33, positions: learned}").empty());
}

TEST_CASE("an output per next token needs the causal mask", "[config]") {
  const std::string rule = "an output per next token needs the causal mask, or it could read the answer";
  CHECK(complaint("model: {output: {per: next}}") == "t.yaml:1:23: model.output.per: " + rule);
  CHECK(complaint("model: {attention: {mask: none}, output: {per: next}}") ==
        "t.yaml:1:27: model.attention.mask: " + rule);
  CHECK(complaints("model: {attention: {mask: causal}, output: {per: next}}").empty());
}

TEST_CASE("a task that answers with what comes later needs the causal mask", "[config]") {
  const std::string task = "task: {name: induction, length: 8}\n";
  CHECK(complaint(task) ==
        "t.yaml:1:14: task.name: task induction needs the causal mask, or the model could read the answers "
        "further on");
  CHECK(complaints(task + "model: {attention: {mask: causal}}").empty());
}

TEST_CASE("the task must supply the kind of output", "[config]") {
  CHECK(complaint("model: {output: {per: sequence}}") ==
        "t.yaml:1:23: model.output.per: task reverse: 16 answers: one output per sequence needs exactly one; "
        "set model.output.per=position");
}

TEST_CASE("no shard is empty", "[config]") {
  CHECK(complaint("train: {batch: 8, shards: 9}") ==
        "t.yaml:1:27: train.shards: 9 shards of a batch of 8 would leave some empty");
  CHECK(complaint("train: {batch: 3}") ==
        "t.yaml:1:16: train.batch: 4 shards of a batch of 3 would leave some empty");
  CHECK(complaints("train: {batch: 8, shards: 8}").empty());
}

TEST_CASE("the warm-up ends within the training", "[config]") {
  CHECK(complaint("train: {steps: 10, schedule: {warmup: 11}}") ==
        "t.yaml:1:39: train.schedule.warmup: a warmup of 11 is longer than all 10 steps; "
        "set train.schedule.warmup=10 or less, or train.steps=11 or more");
  CHECK(complaints("train: {steps: 10, schedule: {warmup: 10}}").empty());
}

TEST_CASE("a target and patience need evaluations before the end", "[config]") {
  const std::string rule = "nothing is evaluated before the last step; set train.evaluate_every";
  CHECK(complaint("train: {target: {accuracy: 0.9}}") == "t.yaml:1:28: train.target.accuracy: " + rule);
  CHECK(complaint("train: {target: {loss: 0.1}}") == "t.yaml:1:24: train.target.loss: " + rule);
  CHECK(complaint("train: {patience: 3}") == "t.yaml:1:19: train.patience: " + rule);
  CHECK(complaint("train: {patience: 3, evaluate_every: 9}", {"train.evaluate_every=0"}) ==
        "command line: train.evaluate_every=0: " + rule);
  CHECK(complaints("train: {target: {accuracy: 0.9, loss: 0.1}, patience: 3, evaluate_every: 9}").empty());
}

TEST_CASE("each kind of output has its layout", "[config]") {
  using enum thimble::OutputPer;
  const auto layout = [](thimble::OutputPer per) { return thimble::layout_of({.output = {.per = per}}); };
  CHECK(layout(position) == thimble::Layout::position);
  CHECK(layout(sequence) == thimble::Layout::sequence);
  CHECK(layout(next) == thimble::Layout::next);
  CHECK(thimble::layout_of({.kind = thimble::ModelKind::encoder_decoder, .output = {.per = next}}) ==
        thimble::Layout::seq2seq);
}

TEST_CASE("an encoder-decoder writes one token after another, and its encoder reads all", "[config]") {
  CHECK(complaint("model: {kind: encoder_decoder, output: {per: position}}\n") ==
        "t.yaml:1:46: model.output.per: a decoder answers with one token after another; set model.output.per "
        "to "
        "next");
  CHECK(complaint("model: {kind: encoder_decoder, output: {per: next}, attention: {mask: causal}}\n") ==
        "t.yaml:1:71: model.attention.mask: the mask is the encoder's, which may read all of its input (the "
        "decoder's is causal in any case); set it to none");
  CHECK(complaint("model: {kind: encoder_decoder, output: {per: next}, mixer: convolution}\n") ==
        "t.yaml:1:60: model.mixer: an encoder-decoder needs attention; set model.mixer to attention, or "
        "model.kind to encoder");
  CHECK(complaints("model: {kind: encoder_decoder, output: {per: next}}\n").empty());
  for (const char* kind : {"encoder_decoder", "recurrent"}) {
    const thimble::Config config =
        thimble::parse_config(fmt::format("model: {{kind: {}}}\n", kind), "t.yaml");
    CHECK(config.model.output.per == thimble::OutputPer::next);
    CHECK(to_yaml(thimble::parse_config(to_yaml(config), "t.yaml")) == to_yaml(config));
  }
  CHECK(complaint("task: {name: masked}\nmodel: {kind: encoder_decoder, output: {per: next}}\n") ==
        "t.yaml:2:46: model.output.per: task masked: a position without an answer: one output per next token "
        "needs all of them; set model.kind=encoder model.output.per=position");
}

TEST_CASE("a recurrent model refuses what says nothing of it", "[config]") {
  const auto recurrent = [](const std::string& keys) {
    return "model: {kind: recurrent" + keys + ", output: {per: next}}";
  };
  CHECK(complaints(recurrent("")).empty());
  CHECK(thimble::layout_of({.kind = thimble::ModelKind::recurrent}) == thimble::Layout::seq2seq);
  for (const char* score : {"additive", "dot", "general", "scaled_dot", "none"})
    CHECK(complaints(recurrent(fmt::format(", attention: {{score: {}}}", score))).empty());
  CHECK(complaint(recurrent(", heads: 2")) ==
        "t.yaml:1:33: model.heads: model.heads has no effect on a recurrent model; remove it, or set "
        "model.kind to encoder_decoder");
  // All at once, also where the one thing to blame is on the command line.
  CHECK(complaint("model: {heads: 2, d_ff: 65, output: {per: next}}", {"model.kind=recurrent"}) ==
        "command line: model.kind=recurrent: model.heads, model.d_ff have no effect on a recurrent model; "
        "remove "
        "them, or set model.kind to encoder_decoder");
  for (const char* key :
       {"layers: 2", "d_ff: 65", "norm: pre", "norm_type: rms", "activation: gelu", "gated: true",
        "positions: none", "mixer: convolution", "window: 5", "attention: {mask: causal}",
        "attention: {combine: sum}", "attention: {tie_query_key: true}", "attention: {kv_heads: 1}",
        "attention: {d_key: 4}", "attention: {d_value: 4}"}) {
    CAPTURE(key);
    CHECK_THAT(complaint(recurrent(std::string(", ") + key)),
               EndsWith(fmt::format(": {} has no effect on a recurrent model; remove it, or set "
                                    "model.kind to encoder_decoder",
                                    full_key(key))));
  }
  CHECK_THAT(
      complaint("model: {kind: recurrent, output: {per: next, hidden: 3}}"),
      StartsWith("t.yaml:1:54: model.output.hidden: model.output.hidden has no effect on a recurrent"));
  CHECK(complaint("model: {kind: recurrent, output: {per: position}}") ==
        "t.yaml:1:40: model.output.per: a decoder answers with one token after another; set model.output.per "
        "to "
        "next");
  CHECK(complaint(recurrent(", d_model: 5")) ==
        "t.yaml:1:35: model.d_model: a recurrent model reads the source in both directions, with half of its "
        "5 columns each; make d_model even");
  CHECK(complaint(recurrent(", attention: {score: none, dropout: 0.1}")) ==
        "t.yaml:1:60: model.attention.dropout: there are no attention weights to drop; choose a score, or "
        "leave the dropout at 0");
  CHECK(complaint(recurrent(", attention: {score: none}") + "\ntrain: {log_heads: true}") ==
        "t.yaml:2:20: train.log_heads: this model has no heads to log; leave log_heads out");
  CHECK(complaints(recurrent("") + "\ntrain: {log_heads: true}").empty());
}

TEST_CASE("only a recurrent model does without attention", "[config]") {
  const std::string rule =
      "model.attention.score: only a recurrent model does without attention; choose another score, or set "
      "model.kind to recurrent";
  CHECK(complaint("model: {attention: {score: none}}") == "t.yaml:1:28: " + rule);
  CHECK_THAT(complaint("model: {kind: encoder_decoder, attention: {score: none}, output: {per: next}}"),
             EndsWith(rule));
}

TEST_CASE("a key that the task does not read is refused", "[config]") {
  CHECK(complaint("task: {name: copy, depth: 3}\n") ==
        "t.yaml:1:27: task.depth: task copy has no such key; it has symbols, length, min_length");
  CHECK(complaint("{}", {"task.pairs=3"}) ==
        "command line: task.pairs=3: task reverse has no such key; it has symbols, length, min_length");
  CHECK(complaint("task: {name: coreference, depth: 3}\n") ==
        "t.yaml:1:34: task.depth: task coreference has no such key; it has none");
  CHECK(thimble::to_yaml(thimble::Config{}).find("depth") == std::string::npos);
}
