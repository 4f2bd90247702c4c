// One output per sequence, which does not depend on padding.
#include <cmath>
#include <vector>

#include "catch.h"
#include "engine/model/transformer.h"

using namespace thimble;

namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::int64_t kPoolTime = 6, kPoolVocabulary = 5;
constexpr double kPoolRounding = sizeof(Real) == 8 ? 1e-12 : 1e-4;

Transformer model(Pooling pooling, NormOrder norm) {
  ModelConfig config{.d_model = 12, .heads = 2, .layers = 2, .d_ff = 16, .norm = norm};
  config.output = {.per = OutputPer::sequence, .pooling = pooling};
  Transformer result(config, {kPoolVocabulary, kPoolTime});
  result.init(3);
  return result;
}

std::vector<Real> logits_of(const Transformer& m, const ModelInput& input) {
  Tape tape(Tape::Mode::inference);
  tape.bind(m.parameters(), {});
  const Var y = m(tape, input, {});
  REQUIRE(y.shape() == Shape{std::ssize(input.tokens) / input.length, kPoolVocabulary});
  return {y.value().data, y.value().data + y.value().elements()};
}

void expect_near(double actual, double expected) {
  CHECK_THAT(actual, WithinRel(expected, kPoolRounding) || WithinAbs(expected, kPoolRounding));
}

// Returns the output (T, C) of the encoder for one sequence.
struct Encoded : Hooks {
  void observe(Site site, const Shape& shape, ConstMatrixView x) override {
    if (site.kind == SiteKind::encoder_output)
      value = Tensor(shape, {x.data, static_cast<std::size_t>(x.elements())});
  }
  Tensor value;
};

}  // namespace

TEST_CASE("padding changes no answer for a sequence, however it is pooled", "[model]") {
  const Tokens padded{1, 2, 3, 4, 1, 2, 3, 1, 4, 0, 0, 0, 2, 0, 0, 0, 0, 0}, lengths{6, 3, 1};
  Tokens other = padded;
  for (const std::size_t padding : {9, 10, 11, 13, 14, 15, 16, 17}) other[padding] = 4;
  for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
    for (const NormOrder norm : {NormOrder::pre, NormOrder::post}) {
      CAPTURE(pooling, norm);
      const Transformer m = model(pooling, norm);
      const auto together = logits_of(m, {.tokens = padded, .length = kPoolTime, .lengths = lengths});
      CHECK(logits_of(m, {.tokens = other, .length = kPoolTime, .lengths = lengths}) == together);
      for (std::size_t b = 0; b < 3; ++b) {
        const std::span<const std::int32_t> tokens =
            std::span(padded).subspan(b * kPoolTime, static_cast<std::size_t>(lengths[b]));
        const auto alone = logits_of(m, {.tokens = tokens, .length = lengths[b]});
        for (std::size_t v = 0; v < alone.size(); ++v)
          expect_near(double(together[b * kPoolVocabulary + v]), double(alone[v]));
      }
    }
  }
}

TEST_CASE("a sequence is pooled as its config says", "[model]") {
  const Tokens tokens{1, 2, 3, 4, 1, 2}, lengths{4};
  const auto channel_of = [&](const Tensor& x, Pooling pooling, std::int64_t c) {
    double sum = 0;
    for (std::int64_t t = 0; t < 4; ++t) sum += double(x.matrix().row(t)[c]) / 4;
    if (pooling == Pooling::mean) return sum;
    return double(x.matrix().row(pooling == Pooling::first ? 0 : 3)[c]);
  };
  for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
    CAPTURE(pooling);
    const Transformer m = model(pooling, NormOrder::pre);
    Encoded encoded;
    Tape tape(Tape::Mode::inference);
    tape.bind(m.parameters(), {});
    const Var y = m(tape, {.tokens = tokens, .length = kPoolTime, .lengths = lengths}, {.hooks = &encoded});
    const auto& entries = m.parameters().entries();
    const auto values = [&](const std::string& name) {
      const auto entry = std::ranges::find(entries, name, &ParameterStore::Entry::name);
      return m.parameters().values().subspan(entry->offset, entry->size());
    };
    const auto weight = values("output.weight"), bias = values("output.bias");
    for (std::int64_t v = 0; v < kPoolVocabulary; ++v) {
      double logit = double(bias[static_cast<std::size_t>(v)]);
      for (std::int64_t c = 0; c < 12; ++c)
        logit += double(weight[static_cast<std::size_t>(12 * v + c)]) * channel_of(encoded.value, pooling, c);
      expect_near(double(y.value().data[v]), logit);
    }
  }
}
