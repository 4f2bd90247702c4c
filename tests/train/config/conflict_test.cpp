// Rules about several keys at once.
#include "catch.h"
#include "config_problems.h"

namespace {

// "model.heads" of "heads: 2", "model.attention.mask" of "attention: {mask: causal}".
std::string full_key(std::string_view yaml) {
  const auto colon = yaml.find(':'), brace = yaml.find('{');
  if (brace == std::string_view::npos) return fmt::format("model.{}", yaml.substr(0, colon));
  return fmt::format("model.{}.{}", yaml.substr(0, colon),
                     yaml.substr(brace + 1, yaml.rfind(':') - brace - 1));
}

}  // namespace

TEST_CASE("what keeps a rule of messages.txt just so is valid", "[config]") {
  for (const char* yaml :
       {"model: {heads: 4, attention: {kv_heads: 2}}",
        "model: {heads: 4, attention: {tie_query_key: true, kv_heads: 4}}", "model: {d_ff: 0}",
        "model: {mixer: convolution, window: 4, attention: {mask: causal}}",
        "task: {length: 6, min_length: 6}", "data: {train: 64}\ntrain: {batch: 64}",
        "data: {train: 0}\ntrain: {batch: 65}", "model: {d_model: 33, positions: learned}",
        "train: {steps: 10, schedule: {warmup: 10}}"}) {
    CAPTURE(yaml);
    CHECK(is_valid(yaml));
  }
}

TEST_CASE("heads must divide d_model, unless both widths of a head are given", "[config]") {
  CHECK(place("model: {d_model: 48, heads: 5}") == "1:29 model.heads");
  CHECK(place("model: {heads: 64}") == "1:16 model.heads");
  CHECK(is_valid("model: {d_model: 48, heads: 6}"));
  CHECK(is_valid("model: {d_model: 48, heads: 5, attention: {d_key: 8, d_value: 9}}"));
  for (const char* width : {"d_key", "d_value"})
    CHECK(place(fmt::format("model: {{d_model: 48, heads: 5, attention: {{{}: 8}}}}", width)) ==
          "1:29 model.heads");
}

TEST_CASE("rotary positions turn pairs of columns, for plain products", "[config]") {
  CHECK(is_valid("model: {d_model: 10, heads: 2, positions: rotary, attention: {d_key: 4}}"));
  for (const char* score : {"general", "additive"})
    CHECK(place(fmt::format("model: {{positions: rotary, attention: {{score: {}}}}}", score)) ==
          "1:20 model.positions");
  CHECK(is_valid("model: {positions: alibi, attention: {score: additive}}"));
}

TEST_CASE("keys of rotary positions have no effect on others", "[config]") {
  for (const char* key : {"rotary: halves", "rotary_base: 500"}) {
    for (const char* positions : {"sinusoidal", "learned", "none", "alibi"})
      CHECK(problem(fmt::format("model: {{positions: {}, {}}}", positions, key)).key == full_key(key));
    CHECK(problem(fmt::format("model: {{mixer: convolution, {}}}", key)).key == full_key(key));
    // Both remedies: the key removed, and positions that are rotary.
    CHECK(is_valid("model: {positions: learned}"));
    CHECK(is_valid(fmt::format("model: {{positions: rotary, {}}}", key)));
  }
  CHECK(is_valid("model: {positions: learned, rotary: pairs, rotary_base: 10000}"));
}

TEST_CASE("a convolution has a window and no heads, attention the other way round", "[config]") {
  CHECK(is_valid("model: {mixer: convolution, window: 5}"));
  for (const char* key : {"heads: 2", "attention: {dropout: 0.1}", "attention: {score: dot}",
                          "attention: {combine: sum}", "attention: {tie_query_key: true}",
                          "attention: {kv_heads: 1}", "attention: {d_key: 4}", "attention: {d_value: 4}"}) {
    CAPTURE(key);
    CHECK(problem(fmt::format("model: {{mixer: convolution, {}}}", key)).key == full_key(key));
  }
  for (const char* positions : {"rotary", "alibi"})
    CHECK(place(fmt::format("model: {{mixer: convolution, positions: {}}}", positions)) ==
          "1:40 model.positions");
}

TEST_CASE("a conflict is placed at a key that was given, on the command line if there", "[config]") {
  CHECK(place("data: {train: 64}") == "1:15 data.train");
  CHECK(place("model: {d_model: 48, heads: 6}", {"model.d_model=32"}) == "argument 1 model.d_model");
}

TEST_CASE("the task must fit into the model", "[config]") {
  CHECK(is_valid("task: {length: 17}\nmodel: {max_length: 17}"));
  CHECK(is_valid("task: {length: 17}\nmodel: {max_length: 0}"));
  const std::string next =
      "task: {length: 6}\nmodel: {attention: {mask: causal}, output: {per: next}, max_length: ";
  CHECK(place(next + "10}") == "2:69 model.max_length");
  CHECK(is_valid(next + "11}"));
  // A source of an encoder-decoder that is longer than what is written.
  const std::string pair = "task: {name: majority, length: 17}\nmodel: {kind: encoder_decoder, max_length: ";
  CHECK(place(pair + "16}") == "2:44 model.max_length");
  CHECK(is_valid(pair + "17}"));
}

TEST_CASE("an output per next token requires the causal mask", "[config]") {
  CHECK(place("model: {attention: {mask: none}, output: {per: next}}") == "1:27 model.attention.mask");
  CHECK(is_valid("model: {attention: {mask: causal}, output: {per: next}}"));
}

TEST_CASE("a task whose answers occur later in the input requires the causal mask", "[config]") {
  const std::string task = "task: {name: induction, length: 8}\n";
  CHECK(place(task) == "1:14 task.name");
  CHECK(is_valid(task + "model: {attention: {mask: causal}}"));
}

TEST_CASE("no shard is empty", "[config]") {
  CHECK(place("train: {batch: 3}") == "1:16 train.batch");
  CHECK(is_valid("train: {batch: 8, shards: 8}"));
}

TEST_CASE("a final learning rate has an effect and is at most lr", "[config]") {
  for (const char* name : {"constant", "cosine", "inverse_sqrt"})
    CHECK(problem(fmt::format("train: {{schedule: {{name: {}, final: 1e-4}}}}", name)).key ==
          "train.schedule.final");
  for (const char* name : {"linear", "cosine_decay"}) {
    const auto train = [&](const char* rates) {
      return fmt::format("train: {{optimizer: {{lr: 1e-3}}, schedule: {{name: {}, {}}}}}", name, rates);
    };
    CHECK(problem(train("final: 2e-3")).key == "train.schedule.final");
    CHECK(is_valid(train("final: 1e-3")));
    CHECK(is_valid(train("warmup: 5, final: 1e-4")));
    CHECK(is_valid("train: {optimizer: {lr: 2e-3}, schedule: {name: linear, final: 2e-3}}"));  // the remedy
  }
}

TEST_CASE("a target and patience need evaluations before the end", "[config]") {
  CHECK(place("train: {target: {accuracy: 0.9}}") == "1:28 train.target.accuracy");
  CHECK(place("train: {patience: 3}") == "1:19 train.patience");
  CHECK(place("train: {patience: 3, evaluate_every: 9}", {"train.evaluate_every=0"}) ==
        "argument 1 train.evaluate_every");
  CHECK(is_valid("train: {target: {accuracy: 0.9, loss: 0.1}, patience: 3, evaluate_every: 9}"));
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
  CHECK(place("model: {kind: encoder_decoder, output: {per: next}, attention: {mask: causal}}\n") ==
        "1:71 model.attention.mask");
  CHECK(place("model: {kind: encoder_decoder, output: {per: next}, mixer: convolution}\n") ==
        "1:60 model.mixer");
  CHECK(is_valid("model: {kind: encoder_decoder, output: {per: next}}\n"));
  for (const char* kind : {"encoder_decoder", "recurrent"}) {
    const thimble::Config config =
        thimble::parse_config(fmt::format("model: {{kind: {}}}\n", kind), "t.yaml");
    CHECK(config.model.output.per == thimble::OutputPer::next);
    CHECK(to_yaml(thimble::parse_config(to_yaml(config), "t.yaml")) == to_yaml(config));
  }
  CHECK(place("task: {name: masked}\nmodel: {kind: encoder_decoder, output: {per: next}}\n") ==
        "2:46 model.output.per");
}

TEST_CASE("a recurrent model refuses keys without effect", "[config]") {
  const auto recurrent = [](const std::string& keys) {
    return "model: {kind: recurrent" + keys + ", output: {per: next}}";
  };
  CHECK(is_valid(recurrent("")));
  CHECK(thimble::layout_of({.kind = thimble::ModelKind::recurrent}) == thimble::Layout::seq2seq);
  for (const char* score : {"additive", "dot", "general", "scaled_dot", "none"})
    CHECK(is_valid(recurrent(fmt::format(", attention: {{score: {}}}", score))));
  CHECK(place(recurrent(", heads: 2")) == "1:33 model.heads");
  // One problem names all keys, also where it is placed on the command line.
  const auto unused = problem("model: {heads: 2, d_ff: 65, output: {per: next}}", {"model.kind=recurrent"});
  CHECK(place(unused) == "argument 1 model.kind");
  CHECK_THAT(unused.rule, ContainsSubstring("model.heads, model.d_ff"));
  for (const char* key : {"layers: 2", "d_ff: 65", "norm: pre", "norm_type: rms", "norm_epsilon: 1e-6",
                          "activation: gelu", "gated: true", "positions: none", "rotary: halves",
                          "rotary_base: 500", "mixer: convolution", "window: 5", "attention: {mask: causal}",
                          "attention: {combine: sum}", "attention: {tie_query_key: true}",
                          "attention: {kv_heads: 1}", "attention: {d_key: 4}", "attention: {d_value: 4}"}) {
    CAPTURE(key);
    CHECK(problem(recurrent(std::string(", ") + key)).key == full_key(key));
  }
  CHECK(place("model: {kind: recurrent, output: {per: next, hidden: 3}}") == "1:54 model.output.hidden");
  CHECK(place("model: {kind: recurrent, output: {per: position}}") == "1:40 model.output.per");
  CHECK(place(recurrent(", d_model: 5")) == "1:35 model.d_model");
  CHECK(place(recurrent(", attention: {score: none, dropout: 0.1}")) == "1:60 model.attention.dropout");
  CHECK(place(recurrent(", attention: {score: none}") + "\ntrain: {log_heads: true}") ==
        "2:20 train.log_heads");
  CHECK(is_valid(recurrent("") + "\ntrain: {log_heads: true}"));
}

TEST_CASE("keys of language models exclude one another, and other kinds of model", "[config]") {
  CHECK(place("model: {norm_final: false}") == "1:21 model.norm_final");
  CHECK(is_valid("model: {norm: pre, norm_final: false}"));
  CHECK(place("model: {output: {tied: true, hidden: 3}}") == "1:24 model.output.tied");
  CHECK(place("model: {init_scaled: true}") == "1:22 model.init_scaled");
  CHECK(is_valid("model: {init_std: 0.02, init_scaled: true}"));
  const auto unused =
      problem("model: {init_std: 0.02, embedding_std: 2, position_std: 3, attention: {in_proj_std: 4}}");
  CHECK_THAT(unused.rule,
             ContainsSubstring("model.embedding_std, model.position_std, model.attention.in_proj_std"));
  for (const std::string kind : {"encoder_decoder", "recurrent"})
    for (const char* key : {"norm_weight: false", "norm_embedding: true", "bias: false", "init_std: 0.1",
                            "output: {per: next, tied: true}"}) {
      CAPTURE(kind, key);
      CHECK_FALSE(is_valid(fmt::format("model: {{kind: {}, {}}}", kind, key),
                           std::string_view(key).starts_with("output")
                               ? std::vector<std::string>{}
                               : std::vector<std::string>{"model.output.per=next"}));
    }
}

TEST_CASE("only a recurrent model does without attention", "[config]") {
  CHECK(place("model: {kind: encoder_decoder, attention: {score: none}, output: {per: next}}") ==
        "1:51 model.attention.score");
}

TEST_CASE("a key that the task does not read is refused", "[config]") {
  CHECK(place("{}", {"task.pairs=3"}) == "argument 1 task.pairs");
  CHECK(thimble::to_yaml(thimble::Config{}).find("depth") == std::string::npos);
}
