// Models with one output per sequence, trained by hand, and what padding and masks may not change.
#include <cmath>
#include <string>
#include <vector>

#include "catch.h"
#include "engine/model/transformer.h"
#include "thimble/engine/optimizer.h"
#include "thimble/engine/random.h"

using namespace thimble;

namespace {

using Labels = std::vector<std::int32_t>;

constexpr std::int64_t kTime = 6, kOutputVocabulary = 5;

ModelConfig model_config(Pooling pooling) {
  ModelConfig config;
  config.d_model = 16;
  config.heads = 2;
  config.d_ff = 24;
  config.output = {.per = OutputPer::sequence, .hidden = 12, .pooling = pooling};
  return config;
}

struct Sequences {
  Labels tokens, lengths, labels;
};

// Random sequences of 1 to 6 tokens; the label is the first token, the last one, or the largest.
Sequences draw(Pooling pooling, std::int64_t count, std::uint64_t seed) {
  const Random random(seed, Stream::data);
  Sequences out;
  for (std::int64_t b = 0; b < count; ++b) {
    const auto length = 1 + static_cast<std::int32_t>(random.below(kTime, static_cast<std::uint64_t>(b)));
    Labels row;
    for (std::int32_t t = 0; t < kTime; ++t) {
      row.push_back(t < length ? static_cast<std::int32_t>(random.below(kOutputVocabulary,
                                                                        static_cast<std::uint64_t>(b),
                                                                        static_cast<std::uint32_t>(t), 1))
                               : 0);
    }
    out.lengths.push_back(length);
    out.labels.push_back(pooling == Pooling::first  ? row[0]
                         : pooling == Pooling::last ? row[static_cast<std::size_t>(length - 1)]
                                                    : *std::max_element(row.begin(), row.end()));
    out.tokens.insert(out.tokens.end(), row.begin(), row.end());
  }
  return out;
}

std::vector<Real> logits_of(const Transformer& model, const Labels& tokens, std::int64_t time,
                            const Labels& lengths) {
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  const Var y = model(tape, {.tokens = tokens, .length = time, .lengths = lengths}, {});
  return {y.value().data, y.value().data + y.value().elements()};
}

double largest_gap(std::span<const Real> a, std::span<const Real> b) {
  REQUIRE(a.size() == b.size());
  double gap = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    gap = std::max(gap, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return gap;
}

constexpr double kOutputRounding = sizeof(Real) == 8 ? 1e-12 : 1e-5;

}  // namespace

TEST_CASE("a model with one output per sequence learns, with every pooling", "[train]") {
  for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
    CAPTURE(static_cast<int>(pooling));
    Transformer model(model_config(pooling), {kOutputVocabulary, kTime});
    model.init(3);
    Optimizer optimizer({.lr = 5e-3}, model.parameters());
    std::vector<Real> gradients(model.parameters().size());
    Tape tape;
    tape.bind(model.parameters(), gradients);
    double first = 0, last = 0;
    for (std::uint64_t step = 0; step < 150; ++step) {
      const Sequences batch = draw(pooling, 32, step);
      tape.rewind();
      std::ranges::fill(gradients, Real(0));
      const Var logits = model(tape, {.tokens = batch.tokens, .length = kTime, .lengths = batch.lengths},
                               {.training = true});
      REQUIRE(logits.shape() == Shape{32, kOutputVocabulary});
      const Var loss = cross_entropy(logits, batch.labels);
      tape.backward(loss);
      (step == 0 ? first : last) = static_cast<double>(loss.item());
      optimizer.begin_step(5e-3, 1);
      for (const auto& segment : optimizer.segments())
        optimizer.update(segment, model.parameters().values(), gradients);
    }
    CHECK(first > 1.2);
    CHECK(last < 0.5 * first);
  }
}

TEST_CASE("one output per sequence: every parameter gets a gradient", "[train]") {
  for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
    Transformer model(model_config(pooling), {kOutputVocabulary, kTime});
    model.init(3);
    std::vector<Real> gradients(model.parameters().size());
    Tape tape;
    tape.bind(model.parameters(), gradients);
    const Sequences batch = draw(pooling, 32, 1);
    tape.backward(cross_entropy(
        model(tape, {.tokens = batch.tokens, .length = kTime, .lengths = batch.lengths}, {}), batch.labels));
    for (const auto& entry : model.parameters().entries()) {
      double largest = 0;
      for (std::size_t i = 0; i < entry.size(); ++i)
        largest = std::max(largest, std::abs(static_cast<double>(gradients[entry.offset + i])));
      CAPTURE(static_cast<int>(pooling), entry.name);
      CHECK(largest > 1e-7);
    }
  }
}

TEST_CASE("neither the content nor the amount of padding changes a result", "[train]") {
  for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
    Transformer model(model_config(pooling), {kOutputVocabulary, kTime});
    model.init(3);
    const Sequences batch = draw(pooling, 20, 2);
    const auto padded = logits_of(model, batch.tokens, kTime, batch.lengths);
    Labels scribbled = batch.tokens;
    for (std::size_t i = 0; i < scribbled.size(); ++i) {
      const auto row = i / kTime, at = i % kTime;
      if (static_cast<std::int32_t>(at) >= batch.lengths[row]) scribbled[i] = 3;
    }
    REQUIRE(scribbled != batch.tokens);
    CHECK(largest_gap(logits_of(model, scribbled, kTime, batch.lengths), padded) <= kOutputRounding);
    for (std::size_t b = 0; b < 20; ++b) {
      const auto length = static_cast<std::size_t>(batch.lengths[b]);
      const Labels alone(batch.tokens.begin() + static_cast<std::ptrdiff_t>(b * kTime),
                         batch.tokens.begin() + static_cast<std::ptrdiff_t>(b * kTime + length));
      const auto logits = logits_of(model, alone, batch.lengths[b], {});
      CHECK(largest_gap(logits, std::span(padded).subspan(b * kOutputVocabulary, kOutputVocabulary)) <=
            kOutputRounding);
    }
  }
}

TEST_CASE("under a causal mask no position sees a later token", "[train]") {
  ModelConfig config = model_config(Pooling::mean);
  config.layers = 2;
  config.output.per = OutputPer::next;
  for (const Mask mask : {Mask::causal, Mask::none}) {
    config.attention.mask = mask;
    Transformer model(config, {kOutputVocabulary, kTime});
    model.init(3);
    const Labels tokens{1, 2, 3, 4, 0, 1};
    const auto before = logits_of(model, tokens, kTime, {});
    for (std::size_t changed = 1; changed < kTime; ++changed) {
      Labels other = tokens;
      other[changed] = 4 - other[changed];
      if (other[changed] == tokens[changed]) other[changed] = 0;
      const auto after = logits_of(model, other, kTime, {});
      const double earlier = largest_gap(std::span(before).first(changed * kOutputVocabulary),
                                         std::span(after).first(changed * kOutputVocabulary));
      CAPTURE(changed, earlier);
      CHECK((earlier <= kOutputRounding) == (mask == Mask::causal));
      CHECK(largest_gap(before, after) > 1e-3);
    }
  }
}

TEST_CASE("a sequence longer than the model is refused", "[train]") {
  Transformer model(model_config(Pooling::mean), {kOutputVocabulary, 3});
  const Labels four{1, 1, 1, 1};
  Tape tape;
  tape.bind(model.parameters(), {});
  CHECK_THROWS_WITH(model(tape, {.tokens = four, .length = 4}, {}),
                    "transformer: sequences of 4 tokens, the model accepts at most 3");
  ModelConfig config = model_config(Pooling::mean);
  config.heads = 3;
  CHECK_THROWS_WITH(Transformer(config, {kOutputVocabulary, 3}),
                    "attention: heads (3) must divide d_model (16), unless d_key and d_value are given");
}
