// The recurrent encoder-decoder against PyTorch, finite differences, and itself.
#include "engine/model/recurrent.h"

#include <set>

#include "fixtures_file.h"
#include "thimble/engine/decoding.h"
#include "thimble/engine/error.h"
#include "thimble/engine/gradcheck.h"

using namespace thimble;

namespace {

using Tokens = std::vector<std::int32_t>;

const std::pair<const char*, Score> kKinds[] = {{"none", Score::none},
                                                {"additive", Score::additive},
                                                {"dot", Score::dot},
                                                {"general", Score::general},
                                                {"scaled_dot", Score::scaled_dot}};

const ModelSizes kModelSizes{.vocabulary = 7, .length = 4, .source_length = 8};

const Tokens kSources{1, 2, 3, 4, 5, 6, 0, 0}, kAnswers{1, 2, 3, 4, 5, 6};  // two of each, 4 and 3 tokens
const Tokens kLengths{4, 2};

ModelConfig config(Score score, double dropout = 0, double attention_dropout = 0) {
  return {.kind = ModelKind::recurrent,
          .d_model = 6,
          .attention = {.dropout = attention_dropout, .score = score},
          .dropout = dropout,
          .output = {.per = OutputPer::next}};
}

Recurrent small(Score score, double dropout = 0, double attention_dropout = 0) {
  Recurrent model(config(score, dropout, attention_dropout), kModelSizes);
  model.init(3);
  return model;
}

ModelInput input(const Tokens& sources, const Tokens& lengths, const Tokens& answers,
                 std::span<const std::int32_t> rows = {}) {
  const std::int64_t batch = std::ssize(lengths);
  return {.tokens = answers,
          .length = std::ssize(answers) / batch,
          .sources = sources,
          .source_length = std::ssize(sources) / batch,
          .source_lengths = lengths,
          .rows = rows};
}

Var logits_of(const Recurrent& model, Tape& tape, const Tokens& sources, const Tokens& lengths,
              const Tokens& answers, const ForwardOptions& options = {},
              std::span<const std::int32_t> rows = {}) {
  return model(tape, input(sources, lengths, answers, rows), options);
}

}  // namespace

TEST_CASE("the recurrent model agrees with PyTorch", "[model][fixture]") {
  for (const auto& [name, kind] : kKinds) {
    CAPTURE(name);
    tests::Fixture fixture("recurrent_" + std::string(name));
    Recurrent model(config(kind), kModelSizes);
    fixture.load(model.parameters(), "");
    const auto sources = fixture.integers("sources"), tokens = fixture.integers("tokens");
    tests::Capture capture;
    AlignedVector<Real> gradients(model.parameters().size());
    Tape tape;
    tape.bind(model.parameters(), gradients);
    const Var logits = logits_of(model, tape, sources, fixture.lengths(), tokens, {.hooks = &capture});
    fixture.backward("logits", logits);
    fixture.compare_value("logits", logits);
    fixture.compare_parameters(model.parameters(), gradients, "d_");
    if (kind != Score::none && kind != Score::additive) {
      const Tensor weights = capture.value();
      fixture.compare("weights", weights.shape(), weights.values());
    }
    if (kind == Score::additive) {
      const Tensor expected = fixture.tensor("weights");  // (B, 1, T, S)
      const std::int64_t time = expected.shape()[2], keys = expected.shape()[3];
      for (std::int64_t row = 0; row < expected.matrix().rows; ++row) {
        const Tensor weights =
            capture.value({SiteKind::attention_weights, 0, static_cast<std::int32_t>(row % time)});
        REQUIRE(weights.shape() == Shape{expected.shape()[0], 1, 1, keys});
        tests::compare("weights", {keys},
                       std::span(weights.matrix().row(row / time), static_cast<std::size_t>(keys)),
                       std::span(expected.matrix().row(row), static_cast<std::size_t>(keys)));
      }
    }
    fixture.check_all_used();
  }
}

#ifdef THIMBLE_DOUBLE
TEST_CASE("the gradients of the recurrent model are those of finite differences", "[model]") {
  const Tokens labels{2, 3, -1, 0, 6, 1};
  // With one source token the first states are the 0 before it, and it has weight 1 whatever its score.
  const std::set<std::string> unreached{"encoder.gru.weight_hh_l0",       "encoder.gru.weight_hh_l0_reverse",
                                        "decoder.attention.query.weight", "decoder.attention.query.bias",
                                        "decoder.attention.key.weight",   "decoder.attention.key.bias",
                                        "decoder.attention.score_weight"};
  for (const auto& [name, kind] : kKinds) {
    for (const bool shortest : {false, true}) {
      CAPTURE(name, shortest);
      Recurrent model = small(kind, shortest ? 0 : 0.2, shortest ? 0 : 0.2);
      const auto loss = [&](Tape& tape) {
        const ForwardOptions options{.training = true, .seed = 5, .step = 1};
        if (shortest) return cross_entropy(logits_of(model, tape, {1}, {1}, {2}, options), Tokens{3});
        return cross_entropy(logits_of(model, tape, kSources, kLengths, kAnswers, options), labels);
      };
      for (const GradcheckResult& result : gradcheck(model.parameters(), loss)) {
        CAPTURE(result.input, result.worst_error, result.reason);
        const bool is_zero = shortest && unreached.contains(result.input);
        CHECK(result.verdict == (is_zero ? GradcheckVerdict::undecided : GradcheckVerdict::ok));
      }
    }
  }
}
#endif

TEST_CASE("an answer written token by token has the logits of the whole", "[model]") {
  for (const auto& [name, kind] : kKinds) {
    CAPTURE(name);
    const Recurrent model = small(kind);
    Tape tape;
    tape.bind(model.parameters(), {});
    const Var whole = logits_of(model, tape, kSources, kLengths, kAnswers);
    const auto decoding = model.start_decoding(input(kSources, kLengths, kAnswers));
    for (std::size_t t = 0; t < 3; ++t) {
      const Tensor logits = decoding->next(Tokens{kAnswers[t], kAnswers[3 + t]});
      REQUIRE(logits.shape() == Shape{2, 7});
      for (std::int64_t b = 0; b < 2; ++b)
        tests::compare("logits", {7}, std::span(logits.matrix().row(b), 7),
                       std::span(whole.value().row(b * 3 + static_cast<std::int64_t>(t)), 7));
    }
    decoding->next(Tokens{1, 1});
    CHECK_THROWS_WITH(decoding->next(Tokens{1, 1}),
                      "recurrent: sequences of 5 tokens, the model accepts at most 4");
    CHECK_THROWS_WITH(decoding->next(Tokens{1}), "decoding: 1 tokens for 2 hypotheses");
  }
}

TEST_CASE("a hypothesis of the recurrent model goes on from another one, with its source", "[model]") {
  for (const auto& [name, kind] : kKinds) {
    for (const bool padded : {true, false}) {
      CAPTURE(name, padded);
      const Recurrent model = small(kind);
      ModelInput sources = input(kSources, kLengths, kAnswers);
      if (!padded) sources.source_lengths = {};
      const auto decoding = model.start_decoding(sources), second = model.start_decoding(sources);
      decoding->next(Tokens{1, 4});
      second->next(Tokens{1, 4});
      decoding->reorder(Tokens{1, 0, 1});
      const Tensor logits = decoding->next(Tokens{5, 2, 5}), expected = second->next(Tokens{2, 5});
      for (const auto& [row, from] : {std::pair{0, 1}, {1, 0}, {2, 1}})
        tests::compare("logits", {7}, std::span(logits.matrix().row(row), 7),
                       std::span(expected.matrix().row(from), 7));
    }
  }
}

TEST_CASE("each step of additive attention has sites of its own", "[model]") {
  const Recurrent model = small(Score::additive);
  tests::Capture capture;
  Tape tape;
  tape.bind(model.parameters(), {});
  const auto memory = model.encode(tape, input(kSources, kLengths, kAnswers), {});
  model.decode(memory, memory.initial_state, Tokens{1, 2}, 1, {.hooks = &capture}, {}, 2);
  CHECK(capture.value({SiteKind::attention_weights, 0, 2}).shape() == Shape{2, 1, 1, 4});
  CHECK(capture.value({SiteKind::head_output, 0, 2}).shape() == Shape{2, 1, 6});
}

TEST_CASE("logits of chosen positions are those of all", "[model]") {
  const Tokens rows{1, 5};
  for (const auto& [name, kind] : kKinds) {
    CAPTURE(name);
    const Recurrent model = small(kind);
    Tape tape;
    tape.bind(model.parameters(), {});
    const Var all = logits_of(model, tape, kSources, kLengths, kAnswers);
    const Var some = logits_of(model, tape, kSources, kLengths, kAnswers, {}, rows);
    REQUIRE(all.shape() == Shape{2, 3, 7});
    REQUIRE(some.shape() == Shape{2, 7});
    for (std::int64_t i = 0; i < 2; ++i)
      tests::compare("logits", {7}, std::span(some.value().row(i), 7),
                     std::span(all.value().row(rows[static_cast<std::size_t>(i)]), 7));
  }
}

TEST_CASE("what stands after a source's end does not matter", "[model]") {
  Tokens other = kSources;
  other[6] = 5, other[7] = 3;
  for (const auto& [name, kind] : kKinds) {
    CAPTURE(name);
    const Recurrent model = small(kind);
    Tape tape;
    tape.bind(model.parameters(), {});
    const Var a = logits_of(model, tape, kSources, kLengths, kAnswers);
    const Var b = logits_of(model, tape, other, kLengths, kAnswers);
    const Var unpadded = logits_of(model, tape, {5, 6}, {2}, {4, 5, 6});
    CHECK(std::ranges::equal(tests::elements(a.value()), tests::elements(b.value())));
    tests::compare("alone", {21}, std::span(a.value().row(3), 21), tests::elements(unpadded.value()));
  }
}

TEST_CASE("a source without tokens is answered, and nothing of it is context", "[model]") {
  for (const auto& [name, kind] : kKinds) {
    CAPTURE(name);
    const Recurrent model = small(kind);
    tests::Capture capture;
    Tape tape;
    tape.bind(model.parameters(), {});
    const Var logits = logits_of(model, tape, kSources, {4, 0}, kAnswers, {.hooks = &capture});
    for (const Real x : tests::elements(logits.value())) CHECK(std::isfinite(x));
    if (kind == Score::dot) {
      const Tensor weights = capture.value();
      for (std::int64_t i = 0; i < 6; ++i) {
        Real sum = 0;
        for (std::int64_t j = 0; j < 4; ++j) sum += weights.matrix().row(i)[j];
        CHECK_THAT(sum, WithinAbs(i < 3 ? 1 : 0, 1e-6));
      }
    }
  }
}

TEST_CASE("the sites of the recurrent model", "[model]") {
  for (const auto& [name, kind] : kKinds) {
    CAPTURE(name);
    const Recurrent model = small(kind);
    tests::Capture capture;
    Tape tape;
    tape.bind(model.parameters(), {});
    logits_of(model, tape, kSources, kLengths, kAnswers, {.hooks = &capture});
    CHECK(capture.value({SiteKind::source_embedding}).shape() == Shape{2, 4, 6});
    CHECK(capture.value({SiteKind::encoder_output}).shape() == Shape{2, 4, 6});
    CHECK(capture.value({SiteKind::embedding}).shape() == Shape{2, 3, 6});
    CHECK(capture.value({SiteKind::decoder_output}).shape() == Shape{2, 3, 6});
    CHECK(capture.value({SiteKind::logits}).shape() == Shape{2, 3, 7});
    if (kind != Score::none && kind != Score::additive)
      CHECK(capture.value({SiteKind::head_output}).shape() == Shape{2, 3, 6});
  }
}

TEST_CASE("dropout of the recurrent model draws anew at every step of attention", "[model]") {
  const Recurrent model = small(Score::additive, 0, 0.5);
  Tape tape;
  tape.bind(model.parameters(), {});
  const ForwardOptions training{.training = true, .seed = 1, .step = 1};
  const auto memory = model.encode(tape, input(kSources, {8}, {1}), training);
  const Tokens token{1};
  // The same state and token at two steps: only the draws differ.
  const Var first = model.decode(memory, memory.initial_state, token, 1, training, {}, 0).logits;
  const Var again = model.decode(memory, memory.initial_state, token, 1, training, {}, 0).logits;
  const Var second = model.decode(memory, memory.initial_state, token, 1, training, {}, 1).logits;
  CHECK(std::ranges::equal(tests::elements(first.value()), tests::elements(again.value())));
  CHECK_FALSE(std::ranges::equal(tests::elements(first.value()), tests::elements(second.value())));
  const Var off = model.decode(memory, memory.initial_state, token, 1, {}, {}, 0).logits;
  const Var also_off = model.decode(memory, memory.initial_state, token, 1, {}, {}, 1).logits;
  CHECK(std::ranges::equal(tests::elements(off.value()), tests::elements(also_off.value())));
}

TEST_CASE("the recurrent model refuses sizes that do not fit", "[model]") {
  ModelConfig odd = config(Score::dot);
  odd.d_model = 5;
  CHECK_THROWS_WITH(Recurrent(odd, kModelSizes), ContainsSubstring("recurrent: d_model (5) must be"));
  odd.d_model = 0;
  CHECK_THROWS_AS(Recurrent(odd, kModelSizes), ShapeError);
  const Recurrent model = small(Score::dot);
  Tape tape;
  tape.bind(model.parameters(), {});
  const Tokens long_source(9, 1);
  CHECK_THROWS_WITH(logits_of(model, tape, long_source, {9}, {1}),
                    "recurrent: sequences of 9 tokens, the model accepts at most 8");
  CHECK_THROWS_WITH(logits_of(model, tape, {1}, {1}, {1, 1, 1, 1, 1}),
                    "recurrent: sequences of 5 tokens, the model accepts at most 4");
  const auto memory = model.encode(tape, input(kSources, kLengths, kAnswers), {});
  CHECK_THROWS_WITH(model.decode(memory, memory.initial_state, {}, 0, {}),
                    ContainsSubstring("sequences of 0"));
}

TEST_CASE("every parameter of the recurrent model has a start, the same for one seed", "[model]") {
  for (const auto& [name, kind] : kKinds) {
    CAPTURE(name);
    const Recurrent model = small(kind), same = small(kind);
    for (const auto& entry : model.parameters().entries()) {
      CAPTURE(entry.name);
      const auto values = model.parameters().values().subspan(entry.offset, entry.size());
      CHECK(std::ranges::none_of(values, [](Real x) { return x == 0; }));
    }
    CHECK(model.parameters().hash() == same.parameters().hash());
  }
}
