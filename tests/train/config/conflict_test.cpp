// Rules about several keys at once. Those that messages.txt has are not here, but for what keeps them just so.
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

const std::string kNext =
    "task: {length: 6}\nmodel: {attention: {mask: causal}, output: {per: next}, max_length: ";
// A source of an encoder-decoder that is longer than what is written.
const std::string kPair = "task: {name: majority, length: 17}\nmodel: {kind: encoder_decoder, max_length: ";

}  // namespace

TEST_CASE("a conflict is placed at a key that was given", "[config]") {
  for (const auto& [yaml, where] : {
           // Heads must divide d_model, unless both widths of a head are given.
           std::pair<std::string, std::string>{"model: {heads: 64}", "1:16 model.heads"},
           {"model: {d_model: 48, heads: 5, attention: {d_key: 8}}", "1:29 model.heads"},
           {"model: {d_model: 48, heads: 5, attention: {d_value: 8}}", "1:29 model.heads"},
           {"model: {positions: rotary, attention: {score: general}}", "1:20 model.positions"},
           {"model: {mixer: convolution, positions: rotary}", "1:40 model.positions"},
           {"data: {train: 64}", "1:15 data.train"},
           {kNext + "10}", "2:69 model.max_length"},
           {kPair + "16}", "2:44 model.max_length"},
           {"model: {attention: {mask: none}, output: {per: next}}", "1:27 model.attention.mask"},
           {"train: {batch: 3}", "1:16 train.batch"},
           {"train: {target: {accuracy: 0.9}, evaluate_every: 0}", "1:28 train.target.accuracy"},
           {"train: {patience: 3, evaluate_every: 0}", "1:19 train.patience"},
           {"task: {name: masked}\nmodel: {kind: encoder_decoder, output: {per: next}}\n",
            "2:46 model.output.per"},
           {"model: {kind: recurrent, output: {per: next, hidden: 3}}", "1:54 model.output.hidden"},
           {"model: {kind: recurrent, output: {per: position}}", "1:40 model.output.per"},
           {"model: {kind: recurrent, attention: {score: none}}\ntrain: {log_heads: true}",
            "2:20 train.log_heads"},
           {"model: {norm_final: false}", "1:21 model.norm_final"},
           {"model: {output: {tied: true, hidden: 3}}", "1:24 model.output.tied"},
           {"model: {init_scaled: true}", "1:22 model.init_scaled"},
           {"model: {kind: encoder_decoder, attention: {score: none}}", "1:51 model.attention.score"},
       }) {
    CAPTURE(yaml);
    CHECK(place(yaml) == where);
  }
  CHECK(place("model: {d_model: 48, heads: 6}", {"model.d_model=32"}) == "argument 1 model.d_model");
  CHECK(place("train: {patience: 3, evaluate_every: 9}", {"train.evaluate_every=0"}) ==
        "argument 1 train.evaluate_every");
}

TEST_CASE("what keeps a rule just so is valid", "[config]") {
  for (const std::string& yaml : {
           std::string("model: {heads: 4, attention: {kv_heads: 2}}"),
           {"model: {heads: 4, attention: {tie_query_key: true, kv_heads: 4}}"},
           {"model: {d_ff: 0}"},
           {"model: {mixer: convolution, window: 4, attention: {mask: causal}}"},
           {"model: {mixer: convolution, window: 5}"},
           {"task: {length: 6, min_length: 6}"},
           {"data: {train: 64}\ntrain: {batch: 64}"},
           {"data: {train: 0}\ntrain: {batch: 65}"},
           {"model: {d_model: 33, positions: learned}"},
           {"train: {steps: 10, schedule: {warmup: 10}}"},
           {"model: {d_model: 48, heads: 6}"},
           {"model: {d_model: 48, heads: 5, attention: {d_key: 8, d_value: 9}}"},
           {"model: {d_model: 10, heads: 2, positions: rotary, attention: {d_key: 4}}"},
           {"model: {positions: alibi, attention: {score: additive}}"},
           {"model: {positions: learned, rotary: pairs, rotary_base: 10000}"},
           {"task: {length: 17}\nmodel: {max_length: 17}"},
           {"task: {length: 17}\nmodel: {max_length: 0}"},
           {kNext + "11}"},
           {kPair + "17}"},
           {"task: {name: induction, length: 8}\nmodel: {attention: {mask: causal}}"},
           {"train: {batch: 8, shards: 8}"},
           {"train: {target: {accuracy: 0.9, loss: 0.1}, patience: 3, evaluate_every: 9}"},
           {"train: {target: {accuracy: 0.9}, patience: 3}"},
           {"model: {kind: recurrent}\ntrain: {log_heads: true}"},
           {"model: {norm: pre, norm_final: false}"},
           {"model: {init_std: 0.02, init_scaled: true}"},
       }) {
    CAPTURE(yaml);
    CHECK(is_valid(yaml));
  }
}

TEST_CASE("keys of rotary positions have no effect on others", "[config]") {
  for (const char* key : {"rotary: halves", "rotary_base: 500"}) {
    for (const char* positions : {"sinusoidal", "learned", "none", "alibi"})
      CHECK(problem(fmt::format("model: {{positions: {}, {}}}", positions, key)).key == full_key(key));
    CHECK(problem(fmt::format("model: {{mixer: convolution, {}}}", key)).key == full_key(key));
    CHECK(is_valid(fmt::format("model: {{positions: rotary, {}}}", key)));
  }
}

TEST_CASE("a convolution has no heads", "[config]") {
  for (const char* key : {"heads: 2", "attention: {dropout: 0.1}", "attention: {score: dot}",
                          "attention: {combine: sum}", "attention: {tie_query_key: true}",
                          "attention: {kv_heads: 1}", "attention: {d_key: 4}", "attention: {d_value: 4}"}) {
    CAPTURE(key);
    CHECK(problem(fmt::format("model: {{mixer: convolution, {}}}", key)).key == full_key(key));
  }
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
  }
}

TEST_CASE("each kind of output has its layout", "[config]") {
  using enum thimble::OutputPer;
  const auto layout = [](thimble::OutputPer per) { return thimble::layout_of({.output = {.per = per}}); };
  CHECK(layout(position) == thimble::Layout::position);
  CHECK(layout(sequence) == thimble::Layout::sequence);
  CHECK(layout(next) == thimble::Layout::next);
  for (const auto kind : {thimble::ModelKind::encoder_decoder, thimble::ModelKind::recurrent})
    CHECK(thimble::layout_of({.kind = kind, .output = {.per = next}}) == thimble::Layout::seq2seq);
}

TEST_CASE("a model with a decoder writes one token after another", "[config]") {
  for (const char* kind : {"encoder_decoder", "recurrent"}) {
    const thimble::Config config =
        thimble::parse_config(fmt::format("model: {{kind: {}}}\n", kind), "t.yaml");
    CHECK(config.model.output.per == thimble::OutputPer::next);
    CHECK(to_yaml(thimble::parse_config(to_yaml(config), "t.yaml")) == to_yaml(config));
  }
}

TEST_CASE("a recurrent model refuses keys without effect", "[config]") {
  for (const char* score : {"additive", "dot", "general", "scaled_dot", "none"})
    CHECK(is_valid(fmt::format("model: {{kind: recurrent, attention: {{score: {}}}}}", score)));
  for (const char* key : {"layers: 2", "d_ff: 65", "norm: pre", "norm_type: rms", "norm_epsilon: 1e-6",
                          "activation: gelu", "gated: true", "positions: none", "rotary: halves",
                          "rotary_base: 500", "mixer: convolution", "window: 5", "attention: {mask: causal}",
                          "attention: {combine: sum}", "attention: {tie_query_key: true}",
                          "attention: {kv_heads: 1}", "attention: {d_key: 4}", "attention: {d_value: 4}"}) {
    CAPTURE(key);
    CHECK(problem(fmt::format("model: {{kind: recurrent, {}}}", key)).key == full_key(key));
  }
}

TEST_CASE("keys of language models exclude one another, and other kinds of model", "[config]") {
  const auto unused =
      problem("model: {init_std: 0.02, embedding_std: 2, position_std: 3, attention: {in_proj_std: 4}}");
  CHECK_THAT(unused.rule,
             ContainsSubstring("model.embedding_std, model.position_std, model.attention.in_proj_std"));
  for (const std::string kind : {"encoder_decoder", "recurrent"})
    for (const char* key : {"norm_weight: false", "norm_embedding: true", "bias: false", "init_std: 0.1",
                            "output: {per: next, tied: true}"}) {
      CAPTURE(kind, key);
      CHECK_FALSE(is_valid(fmt::format("model: {{kind: {}, {}}}", kind, key)));
    }
}

TEST_CASE("a dump has no key that the task does not read", "[config]") {
  CHECK(thimble::to_yaml(thimble::Config{}).find("depth") == std::string::npos);
}
