#include "engine/model/encoder_decoder.h"

#include <cmath>
#include <numeric>

#include "catch.h"
#include "fixtures_file.h"
#include "thimble/engine/decoding.h"
#include "thimble/engine/error.h"

using namespace thimble;

namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::int64_t kVocabulary = 9, kLength = 6, kSourceLength = 5, kBatch = 3;

struct Case {
  std::string name;
  ModelConfig config;
};

std::vector<Case> cases() {
  ModelConfig base{.kind = ModelKind::encoder_decoder,
                   .d_model = 12,
                   .heads = 3,
                   .layers = 2,
                   .d_ff = 10,
                   .output = {.per = OutputPer::next}};
  std::vector<Case> all(6, {"post-norm", base});
  all[1] = {"pre-norm, learned positions", base};
  all[1].config.norm = NormOrder::pre;
  all[1].config.positions = Positions::learned;
  all[2] = {"shared keys", base};
  all[2].config.attention.kv_heads = 1;
  all[3] = {"tied, summed", base};
  all[3].config.attention.tie_query_key = true;
  all[3].config.attention.combine = Combine::sum;
  all[4] = {"widths of their own", base};
  all[4].config.attention.d_key = 3;
  all[4].config.attention.d_value = 5;
  all[5] = {"output net, no positions", base};
  all[5].config.positions = Positions::none;
  all[5].config.output.hidden = 7;
  return all;
}

const Tokens kSourceTokens{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 2, 4, 0, 0, 0};
const Tokens kSourceLengths{5, 3, 2};
const Tokens kTokens{7, 1, 2, 3, 4, 5, 7, 6, 5, 4, 3, 2, 7, 0, 1, 0, 1, 0};

ModelInput input(std::span<const std::int32_t> rows = {}) {
  return {.tokens = kTokens,
          .length = kLength,
          .lengths = {},
          .sources = kSourceTokens,
          .source_length = kSourceLength,
          .source_lengths = kSourceLengths,
          .rows = rows};
}

// A model with random values in every parameter.
EncoderDecoder random_model(const ModelConfig& config) {
  EncoderDecoder model(config, {kVocabulary, kLength, kSourceLength});
  model.init(3);
  const Random random(4, Stream::init);
  std::uint64_t i = 0;
  for (Real& x : model.parameters().values()) x += static_cast<Real>(0.2 * random.normal(i++, 77));
  return model;
}

std::vector<Real> logits_of(const EncoderDecoder& model, const ModelInput& in) {
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  const MatrixView y = model(tape, in, {}).value();
  return {y.data, y.data + y.elements()};
}

const double kDecoderRounding = sizeof(Real) == 4 ? 2e-5 : 1e-12;

}  // namespace

TEST_CASE("decoding with kept keys and values gives the logits of the full pass", "[model]") {
  for (const auto& [name, config] : cases()) {
    CAPTURE(name);
    const EncoderDecoder model = random_model(config);
    const std::vector<Real> full = logits_of(model, input());
    const auto decoding = model.start_decoding(input());
    for (std::int64_t t = 0; t < kLength; ++t) {
      Tokens next;
      for (std::int64_t b = 0; b < kBatch; ++b)
        next.push_back(kTokens[static_cast<std::size_t>(b * kLength + t)]);
      const Tensor logits = decoding->next(next);
      for (std::int64_t b = 0; b < kBatch; ++b) {
        for (std::int64_t v = 0; v < kVocabulary; ++v) {
          const auto at = static_cast<std::size_t>((b * kLength + t) * kVocabulary + v);
          CHECK_THAT(double(logits.matrix().row(b)[v]), WithinAbs(double(full[at]), kDecoderRounding));
        }
      }
    }
    CHECK_THROWS_AS(decoding->next(Tokens{1, 2, 3}), ShapeError);  // one more than the model takes
  }
}

TEST_CASE("a hypothesis goes on from another one, with its source", "[model]") {
  const EncoderDecoder model = random_model(cases()[0].config);
  const auto decoding = model.start_decoding(input());
  decoding->next(Tokens{7, 7, 7});
  decoding->next(Tokens{1, 6, 0});
  decoding->reorder(Tokens{2, 2, 0, 1});
  const Tensor logits = decoding->next(Tokens{1, 1, 2, 5});
  const std::vector<Real> full = logits_of(model, input());
  const std::int64_t sequence[] = {2, 2, 0, 1};
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t v = 0; v < kVocabulary; ++v) {
      const auto at = static_cast<std::size_t>((sequence[i] * kLength + 2) * kVocabulary + v);
      CHECK_THAT(double(logits.matrix().row(i)[v]), WithinAbs(double(full[at]), kDecoderRounding));
    }
  }
  CHECK_THROWS_WITH(decoding->next(Tokens{1}), "decoding: 1 tokens for 4 hypotheses");
}

TEST_CASE("the decoder sees no later token, and nothing of the source's padding", "[model]") {
  const EncoderDecoder model = random_model(cases()[1].config);
  const std::vector<Real> before = logits_of(model, input());
  ModelInput changed = input();
  Tokens tokens = kTokens, sources = kSourceTokens;
  tokens[3] = 8;
  changed.tokens = tokens;
  std::vector<Real> after = logits_of(model, changed);
  const auto row = [](const std::vector<Real>& logits, std::size_t at) {
    return std::vector<Real>(logits.begin() + static_cast<std::ptrdiff_t>(at) * kVocabulary,
                             logits.begin() + static_cast<std::ptrdiff_t>(at + 1) * kVocabulary);
  };
  for (std::size_t t = 0; t < 3; ++t) CHECK(row(after, t) == row(before, t));
  CHECK(row(after, 3) != row(before, 3));
  for (const std::size_t padding : {8, 9, 12, 13, 14}) sources[padding] = 3;
  changed = input();
  changed.sources = sources;
  CHECK(logits_of(model, changed) == before);
  sources[7] = 1;  // the last one of a source
  CHECK(logits_of(model, changed) != before);
}

TEST_CASE("logits of chosen rows are those of all rows", "[model]") {
  for (const auto& [name, config] : cases()) {
    CAPTURE(name);
    const EncoderDecoder model = random_model(config);
    const Tokens rows{0, 4, 5, 13};
    const std::vector<Real> all = logits_of(model, input()), chosen = logits_of(model, input(rows));
    REQUIRE(std::ssize(chosen) == std::ssize(rows) * kVocabulary);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto from = static_cast<std::size_t>(rows[i / kVocabulary]) * kVocabulary + i % kVocabulary;
      CHECK_THAT(double(chosen[i]), WithinAbs(double(all[from]), kDecoderRounding));
    }
  }
}

TEST_CASE("attentions are listed in the order of a pass, with what they look from and at", "[model]") {
  const EncoderDecoder model = random_model(cases()[0].config);
  struct Order : Hooks {
    void observe(Site site, const Shape& shape, ConstMatrixView) override {
      if (site.kind != SiteKind::attention_weights) return;
      layers.push_back(site.layer);
      shapes.push_back(shape);
    }
    std::vector<std::int32_t> layers;
    std::vector<Shape> shapes;
  } order;
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  model(tape, input(), {.hooks = &order});
  const std::vector<AttentionLayer>& layers = model.attention_layers();
  REQUIRE(layers.size() == 6);
  CHECK(order.layers == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5});
  for (std::size_t i = 0; i < layers.size(); ++i) {
    CAPTURE(i);
    CHECK(order.shapes[i][2] == (layers[i].queries_source ? kSourceLength : kLength));
    CHECK(order.shapes[i][3] == (layers[i].keys_source ? kSourceLength : kLength));
    CHECK(layers[i].causal == (layers[i].stack == "decoder"));
    CHECK(model.attention(layers[i])->layer == order.layers[i]);
  }
  const auto weights_of = [&](std::size_t layer) {
    return model.parameters().entry(model.attention(layers[layer])->in_proj_weight).name;
  };
  CHECK(weights_of(2) == "decoder.layers.0.self_attn.in_proj_weight");
  CHECK(weights_of(3) == "decoder.layers.0.multihead_attn.in_proj_weight");
  CHECK(layers[5].name() == "cross.1");
  CHECK(layers[5].block == 3);
}

TEST_CASE("an encoder-decoder agrees with PyTorch", "[model][fixture]") {
  const std::string norm = GENERATE(as<std::string>{}, "pre", "post");
  tests::Fixture fixture("encoder_decoder_" + norm);
  ModelConfig config{.kind = ModelKind::encoder_decoder,
                     .d_model = fixture.shape("token_embedding.weight").last(),
                     .heads = fixture.integer("heads"),
                     .layers = 2,
                     .d_ff = fixture.shape("encoder.layers.0.linear1.bias").last(),
                     .norm = norm == "pre" ? NormOrder::pre : NormOrder::post,
                     .activation = Activation::relu,
                     .positions = Positions::learned,
                     .output = {.per = OutputPer::next}};
  EncoderDecoder model(config, {fixture.shape("token_embedding.weight")[0], fixture.shape("tokens").last(),
                                fixture.shape("sources").last()});
  ParameterStore& store = model.parameters();
  fixture.load(store, "");
  const Tokens tokens = fixture.integers("tokens"), sources = fixture.integers("sources"),
               lengths = fixture.integers("source_lengths");
  AlignedVector<Real> gradients(store.size());
  Tape tape;
  tape.bind(store, gradients);
  const Var logits = model(tape,
                           {.tokens = tokens,
                            .length = fixture.shape("tokens").last(),
                            .sources = sources,
                            .source_length = fixture.shape("sources").last(),
                            .source_lengths = lengths},
                           {});
  fixture.backward("logits", logits);
  fixture.compare_value("logits", logits);
  fixture.compare_parameters(store, gradients, "d_");
  fixture.check_all_used();
}

TEST_CASE("neither mask nor positions relate a decoder's tokens to those of the source", "[model]") {
  for (const Positions positions : {Positions::rotary, Positions::alibi}) {
    ModelConfig config = cases()[0].config;
    config.positions = positions;
    const EncoderDecoder model = random_model(config);
    for (const AttentionLayer& layer : model.attention_layers()) {
      const bool cross = layer.keys_source && !layer.queries_source;
      const MultiHeadAttention& attention = *model.attention(layer);
      CHECK(attention.positions == (cross ? Positions::none : positions));
      CHECK((!cross || attention.config.mask == Mask::none));
    }
  }
}
