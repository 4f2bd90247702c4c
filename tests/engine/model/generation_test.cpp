// Generation by causal encoders: decoding with kept keys and values against the full forward pass.
#include "catch.h"
#include "engine/model/transformer.h"
#include "thimble/engine/decoding.h"
#include "thimble/engine/error.h"
#include "thimble/engine/random.h"

namespace thimble::generation_test {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::int64_t kBatch = 3, kLength = 37, kVocabulary = 9;

struct Case {
  const char* name;
  ModelConfig config;
};

std::vector<Case> cases() {
  ModelConfig base;
  base.d_model = 40;
  base.heads = 2;
  base.layers = 2;
  base.d_ff = 72;
  base.attention.mask = Mask::causal;
  base.output.per = OutputPer::next;
  std::vector<Case> all{{"post-norm", base}};
  const auto add = [&](const char* name, const auto& change) {
    change(all.emplace_back(Case{name, base}).config);
  };
  add("pre-norm", [](ModelConfig& c) { c.norm = NormOrder::pre; });
  add("learned positions", [](ModelConfig& c) { c.positions = Positions::learned; });
  add("rotary, shared keys", [](ModelConfig& c) {
    c.positions = Positions::rotary;
    c.attention.kv_heads = 1;
  });
  add("ALiBi", [](ModelConfig& c) { c.positions = Positions::alibi; });
  add("no positions, no feed-forward nets", [](ModelConfig& c) {
    c.positions = Positions::none;
    c.d_ff = 0;
  });
  add("per position, heads added", [](ModelConfig& c) {
    c.output.per = OutputPer::position;
    c.attention.combine = Combine::sum;
  });
  add("additive score, RMS norm, gated", [](ModelConfig& c) {
    c.attention.score = Score::additive;
    c.norm_type = NormType::rms;
    c.gated = true;
  });
  return all;
}

// A model with random values in every parameter.
Transformer random_model(const ModelConfig& config) {
  Transformer model(config, {kVocabulary, kLength, 0});
  model.init(3);
  const Random random(4, Stream::init);
  std::uint64_t i = 0;
  for (Real& x : model.parameters().values()) x += static_cast<Real>(0.2 * random.normal(i++, 77));
  return model;
}

Tokens random_tokens() {
  Tokens tokens;
  for (std::uint64_t i = 0; i < kBatch * kLength; ++i)
    tokens.push_back(static_cast<std::int32_t>(Random(5, Stream::data).below(kVocabulary, i)));
  return tokens;
}

Tensor logits_of(const Transformer& model, const Tokens& tokens) {
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  const MatrixView y = model(tape, {.tokens = tokens, .length = kLength}, {}).value();
  return Tensor({y.rows, y.cols}, std::span(y.data, static_cast<std::size_t>(y.elements())));
}

// Returns positions first .. first + count - 1 of each sequence.
Tokens columns(const Tokens& tokens, std::int64_t first, std::int64_t count) {
  Tokens some;
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::int64_t t = first; t < first + count; ++t)
      some.push_back(tokens[static_cast<std::size_t>(b * kLength + t)]);
  return some;
}

}  // namespace

TEST_CASE("a causal encoder that goes on from a prompt has the bits of the full pass", "[model]") {
  const Tokens tokens = random_tokens();
  for (const auto& [name, config] : cases()) {
    CAPTURE(name);
    const Transformer model = random_model(config);
    const Tensor full = logits_of(model, tokens);
    for (const std::int64_t prompt : {1, 2, 21, 37}) {
      CAPTURE(prompt);
      const Tokens read = columns(tokens, 0, prompt);
      const auto state = model.start_decoding({.tokens = read, .length = prompt});
      for (std::int64_t t = prompt - 1; t < kLength; ++t) {
        const Tensor logits = state->next(columns(tokens, t, 1));
        for (std::int64_t b = 0; b < kBatch; ++b)
          for (std::int64_t v = 0; v < kVocabulary; ++v)
            CHECK(logits.matrix().row(b)[v] == full.matrix().row(b * kLength + t)[v]);
      }
      CHECK_THROWS_AS(state->next(columns(tokens, 0, 1)), ShapeError);  // one more than the model takes
    }
  }
}

TEST_CASE("sequences of a causal encoder go on from others", "[model]") {
  const Tokens tokens = random_tokens(), prompt = columns(tokens, 0, 3);
  const Transformer model = random_model(cases()[1].config);
  const Tensor full = logits_of(model, tokens);
  const auto state = model.start_decoding({.tokens = prompt, .length = 3});
  const Tokens third = columns(tokens, 2, 1), fourth = columns(tokens, 3, 1);
  state->next(third);
  state->reorder(Tokens{2, 2, 0, 1});
  const Tensor logits = state->next(Tokens{fourth[2], fourth[2], fourth[0], fourth[1]});
  const std::int64_t from[] = {2, 2, 0, 1};
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t v = 0; v < kVocabulary; ++v)
      CHECK(logits.matrix().row(i)[v] == full.matrix().row(from[i] * kLength + 3)[v]);
  CHECK_THROWS_WITH(state->next(Tokens{1}), "decoding: 1 tokens for 4 hypotheses");
}

TEST_CASE("the plan of generating counts what is kept", "[model]") {
  ModelConfig config = cases()[0].config;
  const Transformer model(config, {kVocabulary, kLength, 0}, Storage::shapes);
  Tape tape(Tape::Mode::plan);
  tape.bind_plan(model.parameters(), false);
  const Tokens prompt(kBatch * 2, 1);
  const double keys_and_values = 2 * config.d_model;
  CHECK(model.plan_decoding(tape, {.tokens = prompt, .length = 2}) ==
        2 * static_cast<double>(config.layers * kBatch * kLength) * keys_and_values);
  Tape step(Tape::Mode::plan);
  step.bind_plan(model.parameters(), false);
  model(step, {.tokens = std::span(prompt).first(kBatch), .length = 1}, {});
  CHECK(tape.bytes() == step.bytes());
}

TEST_CASE("an encoder that is not causal, or has one output, does not generate", "[model]") {
  ModelConfig blind = cases()[0].config, pooled = blind, convolution = blind;
  blind.attention.mask = Mask::none;
  pooled.output.per = OutputPer::sequence;
  convolution.mixer = Mixer::convolution;
  convolution.window = 3;
  for (const ModelConfig& config : {blind, pooled, convolution}) {
    const Transformer model = random_model(config);
    CHECK_THROWS_WITH(
        model.start_decoding({.tokens = Tokens{1}, .length = 1}),
        "transformer: generates sequences only with causal attention and an output per position");
  }
}

}  // namespace thimble::generation_test
