// Values: types, ranges, names, and where a wrong one is placed.
#include <limits>

#include "catch.h"
#include "config_problems.h"

using namespace thimble;

namespace {

Config parse(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return parse_config(yaml, "t.yaml", overrides);
}
double lr(const std::string& text) {
  return parse("train: {optimizer: {lr: " + text + "}}").train.optimizer.lr;
}

// Returns whether the only problem is there and quotes the value, which is what was `found`.
bool is_refused(const std::string& yaml, const std::string& at, const std::string& found) {
  const ConfigProblem only = problem(yaml);
  return place(only) == at && only.rule.ends_with(", not " + found);
}
bool is_bad_lr(const std::string& text) {
  return is_refused("train: {optimizer: {lr: " + text + "}}", "1:25 train.optimizer.lr", text);
}
bool is_bad_steps(const std::string& text, const std::string& found = "") {
  return is_refused("train: {steps: " + text + "}", "1:16 train.steps", found.empty() ? text : found);
}

}  // namespace

TEST_CASE("numbers are read exactly", "[config]") {
  CHECK(lr("5e-4") == 5e-4);
  CHECK(lr("1") == 1);
  CHECK(lr("1.") == 1);
  CHECK(lr(".5") == 0.5);
  CHECK(lr("+2.5E+1") == 25);
  CHECK(lr("0.1") == 0.1);
  CHECK(parse("train: {steps: 1000000000}").train.steps == 1000000000);
  CHECK(parse("train: {steps: +7}").train.steps == 7);
  CHECK(parse("train: {steps: 010}").train.steps == 10);  // as in YAML 1.2, not octal as in 1.1
  CHECK(parse("train: {seed: 18446744073709551615}").train.seed == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("an integer must be one", "[config]") {
  for (const std::string text : {"1.5", "many", "true", "0x10", "0o10", "0b1", "1_000", "7 8", "--7", "+-7",
                                 "+", "1e10", "nan", "inf"})
    CHECK(is_bad_steps(text, text));
  CHECK(is_bad_steps("1e3", "1e3, did you mean 1000?"));
  CHECK(is_bad_steps("7.0", "7.0, did you mean 7?"));
  for (const std::string text : {"\"7\"", "'7'"}) CHECK(is_bad_steps(text, "\"7\", did you mean 7?"));
  CHECK(is_refused("task: {min_length: +-0}", "1:20 task.min_length", "+-0"));
}

TEST_CASE("an integer that overflows is refused", "[config]") {
  CHECK(is_bad_steps("9223372036854775808"));
  CHECK(is_bad_steps("-9223372036854775809"));
  CHECK(is_bad_steps("18446744073709551617"));  // 2^64 + 1
  for (const std::string text : {"-1", "18446744073709551616", "1.0", "\"1\""})
    CHECK(is_refused("train: {seed: " + text + "}", "1:15 train.seed", text));
}

TEST_CASE("a number must be one", "[config]") {
  for (const std::string text : {"fast", "5e", "\"0.1\"", "1e-3x", "yes", "."}) CHECK(is_bad_lr(text));
  CHECK(place("train:\n  optimizer:\n    lr: 0,1\n") == "3:9 train.optimizer.lr");
}

TEST_CASE("a number must be finite", "[config]") {
  for (const std::string text :
       {".nan",  ".NaN",  ".NAN", "nan",  "NaN",  "-nan", "nan(1)",   ".inf",  ".Inf",   ".INF",
        "+.inf", "-.inf", "inf",  "-inf", "+inf", "Inf",  "infinity", "1e999", "-1e999", "1e-999"})
    CHECK(is_bad_lr(text));
}

TEST_CASE("a number out of range is refused with the range, open ends too", "[config]") {
  CHECK(parse("model: {dropout: 0}").model.dropout == 0);
  CHECK(parse("model: {dropout: 0.99}").model.dropout == 0.99);
}

TEST_CASE("true or false and nothing else", "[config]") {
  CHECK(parse("train: {checkpoint_series: true}").train.checkpoint_series);
  CHECK_FALSE(parse("train: {checkpoint_series: false}").train.checkpoint_series);
  for (const std::string text : {"yes", "no", "on", "off", "True", "1", "\"true\""})
    CHECK(is_refused("train: {checkpoint_series: " + text + "}", "1:28 train.checkpoint_series", text));
}

TEST_CASE("a map, a list or nothing where a value should be", "[config]") {
  CHECK(is_bad_steps("{a: 1}", "a map"));
  CHECK(is_refused("train: {steps: ~}", "1:9 train.steps", "empty"));
  CHECK(place("model: {norm: [pre]}") == "1:15 model.norm");
  CHECK(place("data:\nmodel: {}\n") == "1:1 data");
}

TEST_CASE("aliases are refused, endless ones too", "[config]") {
  CHECK(place("train: &all\n  optimizer: *all\n") == "2:14");
  std::string bomb = "a0: &a0 [x, x, x]\n";
  for (int i = 1; i <= 30; ++i) bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  CHECK(place(problems(bomb).at(0)) == "2:10");
  CHECK(is_valid("task: {symbols: &n 8}\n"));
}

TEST_CASE("a long value is cut in the report, never inside a character", "[config]") {
  CHECK(is_bad_steps(std::string(41, 'x'), std::string(40, 'x') + "..."));
  CHECK(is_bad_steps(std::string(39, 'x') + "\u00e9\u00e9", std::string(39, 'x') + "..."));
  CHECK(is_bad_steps(std::string(1'000'000, '9'), std::string(40, '9') + "..."));
  CHECK(is_bad_steps(std::string(40, 'x')));
}

TEST_CASE("sizes of splits are numbers or all", "[config]") {
  const auto data = [](const std::string& yaml) {
    const DataConfig d = parse(yaml).data;
    return std::array{d.train, d.validation, d.test};
  };
  CHECK(data("{}") == std::array<std::int64_t, 3>{50000, 1000, 10000});
  const std::string file = "task: {name: file, file: a.tsv}\n";
  CHECK(data(file) == std::array{kAll, kAll, kAll});
  CHECK(data(file + "data: {validation: 7, test: all}") == std::array<std::int64_t, 3>{kAll, 7, kAll});
  CHECK(parse(file, {"data.train=900"}).data.train == 900);
  CHECK_THAT(to_yaml(parse(file)), ContainsSubstring("train: all\n  validation: all\n  test: all\n"));
  CHECK(to_json(parse(file))["data"]["train"] == "all");
  CHECK(problem("data: {test: all}").rule ==
        "all requires a data file, which task reverse has not; set a number");
  CHECK(problem(file + "data: {train: 0}").rule ==
        "0 requires a task that generates sequences; set data.train to all, or to a number of lines");
  CHECK(problem(file + "data: {train: some}").rule ==
        "must be an integer from 0 to 1000000000, or all, not some");
}

TEST_CASE("texts of the command line are taken as they are", "[config]") {
  const std::string file = "task: {name: file, file: a.tsv}";
  const auto options = [&](const std::vector<std::string>& overrides) {
    return parse(file, overrides).task.options;
  };
  CHECK(options({"task.input=0,1"}).input == "0,1");
  CHECK(options({"task.separator=OUT:"}).separator == "OUT:");
  CHECK(options({"task.separator=  "}).separator == "  ");
  CHECK(options({"task.separator=\"\\t\""}).separator == "\t");
  CHECK(options({"task.no_answer="}).no_answer.empty());
  CHECK(options({"task.no_answer=\"\""}).no_answer.empty());
  // What a dump writes, it reads back.
  for (const std::string text : {"OUT:", "  ", "a: b", "'", "\"", "\\", "#", "\t", "3", "true"}) {
    Config config = parse(file);
    config.task.options.separator = config.task.options.no_answer = text;
    CHECK(parse(to_yaml(config)).task.options.separator == text);
    CHECK(parse(to_yaml(config)).task.options.no_answer == text);
  }
}

TEST_CASE("a text has no control character but the tab, and is empty only where that means something",
          "[config]") {
  const auto rule = [](const std::string& key, const std::string& value) {
    return problem(fmt::format("task: {{name: file, file: a.tsv, {}: {}}}", key, value)).rule;
  };
  CHECK(rule("separator", R"("a\u0007b")") ==
        R"(must be a text that is not empty, in UTF-8 without control characters, not "a\u{7}b")");
  CHECK(rule("separator", R"("")") ==
        R"(must be a text that is not empty, in UTF-8 without control characters, not "")");
  CHECK(rule("no_answer", R"("a\nb")") ==
        R"(must be a text, in UTF-8 without control characters, not "a\u{a}b")");
}

TEST_CASE("every key of a data file sets its own variable", "[config]") {
  const TableOptions o = parse(R"(
task:
  name: file
  file: a.tsv
  format: csv
  input: 1
  target: b
  header: true
  separator: ;
  input_tokens: words
  target_tokens: characters
  no_answer: "-"
  vocabulary: training
  min_count: 3
  max_tokens: 9
)")
                             .task.options;
  CHECK(
      (o.format == TableFormat::csv && o.input == "1" && o.target == "b" && o.header && o.separator == ";"));
  CHECK((o.input_tokens == Tokenization::words && o.target_tokens == Tokenization::characters));
  CHECK((o.no_answer == "-" && o.vocabulary == VocabularyOf::training && o.min_count == 3 &&
         o.max_tokens == 9));
}

TEST_CASE("every key sets its own variable", "[config]") {
  const Config c = parse(R"(
task: {name: sort, symbols: 3, length: 6, min_length: 4}
data: {train: 301, validation: 302, test: 303}
model:
  d_model: 48
  heads: 3
  layers: 5
  d_ff: 192
  max_length: 11
  norm: pre
  norm_type: rms
  norm_epsilon: 1e-4
  activation: gelu_tanh
  gated: true
  positions: learned
  attention:
    mask: causal
    dropout: 0.11
    score: dot
    combine: sum
    tie_query_key: true
    kv_heads: 3
    d_key: 7
    d_value: 9
  dropout: 0.12
  output: {per: next, hidden: 33, pooling: last}
train:
  steps: 2001
  batch: 65
  seed: 7
  shards: 8
  threads: 2
  precision: float64
  optimizer: {name: sgd, lr: 5e-3, beta1: 0.8, beta2: 0.95, epsilon: 1e-6, momentum: 0.7, weight_decay: 0.2}
  schedule: {name: linear, warmup: 50, final: 2e-3}
  clip_norm: 1.5
  label_smoothing: 0.05
  evaluate_every: 100
  target: {accuracy: 0.97, loss: 0.04}
  patience: 5
  checkpoint_every: 250
  checkpoint_series: true
  log_heads: true
)");
  CHECK((c.task.name == "sort" && c.task.symbols == 3 && c.task.length == 6 && c.task.min_length == 4));
  CHECK((c.data.train == 301 && c.data.validation == 302 && c.data.test == 303));
  CHECK((c.model.d_model == 48 && c.model.heads == 3 && c.model.layers == 5 && c.model.d_ff == 192));
  CHECK((c.model.max_length == 11 && c.model.norm == NormOrder::pre &&
         c.model.positions == Positions::learned));
  CHECK((c.model.activation == Activation::gelu_tanh && c.model.dropout == 0.12));
  CHECK((c.model.attention.mask == Mask::causal && c.model.attention.dropout == 0.11));
  CHECK((c.model.norm_type == NormType::rms && c.model.norm_epsilon == 1e-4 && c.model.gated));
  const RotaryConfig rotary =
      parse("model: {positions: rotary, rotary: halves, rotary_base: 500000}").model.attention.rotary;
  CHECK((rotary.layout == RotaryPairs::halves && rotary.base == 500000));
  CHECK((c.model.mixer == Mixer::attention && c.model.window == 3));
  const ModelConfig l =
      parse(
          "model: {norm: pre, norm_weight: false, norm_embedding: true, norm_final: false, bias: false, init_std: 0.3, init_scaled: true, output: {tied: true}}")
          .model;
  CHECK((!l.norm_weight && l.norm_embedding && !l.norm_final && !l.bias && l.output.tied));
  CHECK((l.init_std == 0.3 && l.init_scaled));
  const AttentionConfig& a = c.model.attention;
  CHECK((a.score == Score::dot && a.combine == Combine::sum && a.tie_query_key));
  CHECK((a.kv_heads == 3 && a.d_key == 7 && a.d_value == 9));
  CHECK((c.model.output.per == OutputPer::next && c.model.output.hidden == 33));
  CHECK(c.model.output.pooling == Pooling::last);
  CHECK((c.train.steps == 2001 && c.train.batch == 65 && c.train.seed == 7 && c.train.shards == 8));
  CHECK((c.train.threads == 2 && c.train.precision == Precision::float64 && c.train.clip_norm == 1.5));
  CHECK((c.train.label_smoothing == 0.05 && c.train.evaluate_every == 100));
  CHECK((c.train.target.accuracy == 0.97 && c.train.target.loss == 0.04 && c.train.patience == 5));
  CHECK((c.train.checkpoint_every == 250 && c.train.checkpoint_series && c.train.log_heads));
  const OptimizerConfig& o = c.train.optimizer;
  CHECK((o.name == OptimizerKind::sgd && o.lr == 5e-3 && o.beta1 == 0.8 && o.beta2 == 0.95 &&
         o.epsilon == 1e-6));
  CHECK((o.momentum == 0.7 && o.weight_decay == 0.2));
  const ScheduleConfig& s = c.train.schedule;
  CHECK((s.name == ScheduleKind::linear && s.warmup == 50 && s.final == 2e-3));
}

TEST_CASE("names stand for the enumerators of that name", "[config]") {
  const auto model = [](const std::string& fields) { return parse("model: {" + fields + "}").model; };
  const auto train = [](const std::string& fields) { return parse("train: {" + fields + "}").train; };
  CHECK(model("norm: post").norm == NormOrder::post);
  CHECK(model("activation: relu").activation == Activation::relu);
  CHECK(model("norm: 'pre'").norm == NormOrder::pre);
  CHECK(model("activation: gelu").activation == Activation::gelu);
  CHECK(model("activation: tanh").activation == Activation::tanh);
  CHECK(model("positions: sinusoidal").positions == Positions::sinusoidal);
  CHECK(model("positions: none").positions == Positions::none);
  CHECK(model("attention: {mask: none}").attention.mask == Mask::none);
  CHECK(model("norm_type: layer").norm_type == NormType::layer);
  CHECK(model("activation: silu").activation == Activation::silu);
  CHECK(model("positions: rotary").positions == Positions::rotary);
  CHECK(model("positions: alibi").positions == Positions::alibi);
  CHECK(model("positions: rotary, rotary: pairs").attention.rotary.layout == RotaryPairs::pairs);
  CHECK(model("mixer: convolution, window: 5").mixer == Mixer::convolution);
  CHECK(model("mixer: convolution, window: 5").window == 5);
  CHECK(model("attention: {score: general}").attention.score == Score::general);
  CHECK(model("attention: {score: additive}").attention.score == Score::additive);
  CHECK(model("attention: {score: scaled_dot}").attention.score == Score::scaled_dot);
  CHECK(model("kind: recurrent, output: {per: next}, attention: {score: none}").attention.score ==
        Score::none);
  CHECK(model("attention: {combine: concat}").attention.combine == Combine::concat);
  CHECK(model("output: {per: position}").output.per == OutputPer::position);
  CHECK(model("output: {pooling: mean}").output.pooling == Pooling::mean);
  CHECK(model("output: {pooling: first}").output.pooling == Pooling::first);
  CHECK(parse("task: {name: copy, length: 1}\nmodel: {output: {per: sequence}}").model.output.per ==
        OutputPer::sequence);
  CHECK(train("precision: float32").precision == Precision::float32);
  CHECK(train("optimizer: {name: adam}").optimizer.name == OptimizerKind::adam);
  CHECK(train("optimizer: {name: adamw}").optimizer.name == OptimizerKind::adamw);
  CHECK(train("schedule: {name: constant}").schedule.name == ScheduleKind::constant);
  CHECK(train("schedule: {name: linear}").schedule.name == ScheduleKind::linear);
  CHECK(train("schedule: {name: cosine}").schedule.name == ScheduleKind::cosine);
  CHECK(train("schedule: {name: inverse_sqrt}").schedule.name == ScheduleKind::inverse_sqrt);
  CHECK(train("schedule: {name: cosine_decay}").schedule.name == ScheduleKind::cosine_decay);
}
