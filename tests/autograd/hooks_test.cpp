// Hooks, on the forward pass of a whole model.
#include "thimble/autograd/hooks.h"

#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "catch.h"
#include "rounding.h"
#include "thimble/core/error.h"
#include "thimble/model/transformer.h"

using namespace thimble;

namespace {

using Values = std::vector<Real>;
using Tokens = std::vector<std::int32_t>;

constexpr std::int64_t kTime = 5, kVocabulary = 7;
const Tokens kTokens{1, 2, 3, 4, 5, 6, 0, 1, 0, 0};
const Tokens kLengths{5, 3};
const std::string kWeights = "encoder.layers.1.self_attn.weights";

struct Watcher : Hooks {
  void observe(std::string_view site, const Shape& shape, ConstMatrixView value) override {
    seen[std::string(site)] = Values(value.data, value.data + value.elements());
    shapes[std::string(site)] = shape;
    order.emplace_back(site);
  }
  bool replace(std::string_view site, const Shape& shape, MatrixView value) override {
    const auto found = replacements.find(std::string(site));
    if (found == replacements.end()) return false;
    found->second(shape, value);
    return true;
  }
  std::map<std::string, Values> seen;
  std::map<std::string, Shape> shapes;
  std::vector<std::string> order;
  std::map<std::string, std::function<void(const Shape&, MatrixView)>> replacements;
};

Transformer model(bool causal, double dropout = 0, Score score = Score::scaled_dot) {
  ModelConfig config;
  config.d_model = 12;
  config.heads = 3;
  config.layers = 2;
  config.d_ff = 16;
  config.attention = {.mask = causal ? Mask::causal : Mask::none, .dropout = dropout};
  config.attention.score = score;
  config.dropout = dropout;
  Transformer result(config, {kVocabulary, kTime});
  result.init(5);
  return result;
}

// One pass with gradients, as training does it.
struct Run {
  explicit Run(const Transformer& m, Hooks* hooks = nullptr) : gradients(m.parameters().size()) {
    Tape tape;
    tape.bind(m.parameters(), gradients);
    const Var y = m(tape, {.tokens = kTokens, .length = kTime, .lengths = kLengths},
                    {.training = true, .seed = 3, .hooks = hooks});
    Tensor seed(y.shape());
    for (std::size_t i = 0; i < seed.values().size(); ++i) seed.data()[i] = std::sin(static_cast<Real>(i));
    tape.backward(y, seed.matrix());
    logits.assign(y.value().data, y.value().data + y.value().elements());
  }
  // The largest gradient of the parameter of this name.
  double gradient(const Transformer& m, const std::string& name) const {
    for (const auto& entry : m.parameters().entries()) {
      if (entry.name != name) continue;
      double largest = 0;
      for (std::size_t i = 0; i < entry.size(); ++i)
        largest = std::max(largest, std::abs(double(gradients[entry.offset + i])));
      return largest;
    }
    throw Error("no parameter " + name);
  }
  std::vector<Real> gradients;
  Values logits;
};

void look_at_first_key(const Shape& shape, MatrixView weights) {
  for (std::int64_t r = 0; r < weights.rows; ++r) {
    for (std::int64_t j = 0; j < shape[3]; ++j) weights.row(r)[j] = j == 0 ? 1 : 0;
  }
}

// Weights of which no softmax passes a gradient of 0 on, as it does of 0 and 1.
void lean_on_first_key(const Shape& shape, MatrixView weights) {
  const Real rest = Real(0.25) / static_cast<Real>(shape[3] - 1);
  for (std::int64_t r = 0; r < weights.rows; ++r) {
    for (std::int64_t j = 0; j < shape[3]; ++j) weights.row(r)[j] = j == 0 ? Real(0.75) : rest;
  }
}

void zero(const Shape&, MatrixView value) { std::fill_n(value.data, value.elements(), Real{0}); }

}  // namespace

TEST_CASE("every site of a pass is seen, in order, with its shape", "[autograd]") {
  const Transformer m = model(false);
  Watcher watcher;
  const Run run(m, &watcher);
  std::vector<std::string> expected{"embedding"};
  for (const std::string layer : {"encoder.layers.0.", "encoder.layers.1."}) {
    for (const char* site : {"self_attn.weights", "self_attn.head_output", "residual_mid", "residual_out"}) {
      expected.push_back(layer + site);
    }
  }
  expected.insert(expected.end(), {"encoder.output", "logits"});
  CHECK(watcher.order == expected);
  CHECK(watcher.shapes[kWeights] == Shape{2, 3, kTime, kTime});
  CHECK(watcher.shapes["embedding"] == Shape{2, kTime, 12});
  CHECK(watcher.shapes["encoder.layers.0.self_attn.head_output"] == Shape{2, kTime, 12});
  CHECK(watcher.shapes["logits"] == Shape{2, kTime, kVocabulary});
  CHECK(watcher.seen["logits"] == run.logits);
  CHECK(watcher.seen["encoder.layers.1.residual_out"] == watcher.seen["encoder.output"]);
}

TEST_CASE("watching changes neither values nor gradients", "[autograd]") {
  const Transformer m = model(true, 0.3);
  Watcher watcher;
  const Run watched(m, &watcher), alone(m);
  CHECK(watched.logits == alone.logits);
  CHECK(watched.gradients == alone.gradients);
}

TEST_CASE("attention weights are those of the mask, before dropout", "[autograd]") {
  for (const bool causal : {false, true}) {
    for (const double dropout : {0.0, 0.5}) {
      CAPTURE(causal, dropout);
      Watcher watcher;
      const Run run(model(causal, dropout), &watcher);
      for (const std::string site :
           {"encoder.layers.0.self_attn.weights", "encoder.layers.1.self_attn.weights"}) {
        const Values& weights = watcher.seen.at(site);
        for (std::int64_t row = 0; row < 2 * 3 * kTime; ++row) {
          const std::int64_t query = row % kTime,
                             length = kLengths[static_cast<std::size_t>(row / kTime / 3)];
          const std::int64_t visible = causal ? std::min(query + 1, length) : length;
          double sum = 0;
          for (std::int64_t j = 0; j < kTime; ++j) {
            const Real w = weights[static_cast<std::size_t>(row * kTime + j)];
            if (j >= visible) CHECK(w == 0);
            if (j < visible) CHECK(w > 0);
            sum += double(w);
          }
          CHECK_THAT(sum, WithinAbs(1, 1e-6));
        }
      }
    }
  }
}

TEST_CASE("replaced weights are what the pass goes on with", "[autograd]") {
  const Transformer m = model(false);
  Watcher watcher;
  watcher.replacements[kWeights] = look_at_first_key;
  const Run run(m, &watcher), untouched(m);
  CHECK(run.logits != untouched.logits);
  CHECK(watcher.seen[kWeights][0] == 1);  // observe sees the replacement
  CHECK(watcher.seen[kWeights][1] == 0);
  const Values& heads =
      watcher.seen["encoder.layers.1.self_attn.head_output"];  // the value of token 0, at every query
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t i = 0; i < kTime * 12; ++i) {
      REQUIRE(heads[static_cast<std::size_t>(b * kTime * 12 + i)] ==
              heads[static_cast<std::size_t>(b * kTime * 12 + i % 12)]);
    }
  }
}

TEST_CASE("no gradient flows back through replaced weights, but it does through the values", "[autograd]") {
  for (const Score score : {Score::scaled_dot, Score::general, Score::additive}) {
    CAPTURE(score);
    const Transformer m = model(false, 0, score);
    Watcher watcher;
    watcher.replacements[kWeights] = lean_on_first_key;
    const Run run(m, &watcher), untouched(m);
    const std::string name = "encoder.layers.1.self_attn.in_proj_weight";
    const auto& entries = m.parameters().entries();
    const auto entry = std::ranges::find(entries, name, &ParameterStore::Entry::name);
    const auto largest = [&](const Run& r, std::size_t part) {  // of the query, key or value third
      double result = 0;
      for (std::size_t i = part * 144; i < (part + 1) * 144; ++i)
        result = std::max(result, std::abs(double(r.gradients[entry->offset + i])));
      return result;
    };
    for (const std::size_t part : {0, 1}) {
      CHECK(largest(run, part) == 0);
      CHECK(largest(untouched, part) > 1e-4);
    }
    if (score != Score::scaled_dot) {
      const std::string weight = "encoder.layers.1.self_attn.score_weight";
      CHECK(run.gradient(m, weight) == 0);
      CHECK(untouched.gradient(m, weight) > 1e-4);
    }
    CHECK(largest(run, 2) > 1e-4);
    CHECK(run.gradient(m, "encoder.layers.0.linear1.weight") > 1e-4);
  }
}

TEST_CASE("a replaced residual stream cuts off everything before it", "[autograd]") {
  const Transformer m = model(false);
  Watcher watcher;
  watcher.replacements["encoder.layers.0.residual_out"] = zero;
  const Run run(m, &watcher);
  // No input is left: every position has the logits of the first.
  for (std::size_t i = 0; i < run.logits.size(); i += kVocabulary)
    REQUIRE(same_but_for_rounding(m.config(), {&run.logits[i], &run.logits[i] + kVocabulary},
                                  {run.logits.begin(), run.logits.begin() + kVocabulary}));
  CHECK(run.gradient(m, "token_embedding.weight") == 0);
  CHECK(run.gradient(m, "encoder.layers.0.linear2.bias") == 0);
  CHECK(run.gradient(m, "encoder.layers.1.linear1.bias") > 1e-4);
  CHECK(watcher.seen["encoder.layers.0.residual_out"] == Values(2 * kTime * 12, 0));
}

TEST_CASE("a replacement leaves no trace in the next pass", "[autograd]") {
  const Transformer m = model(true);
  const Run before(m);
  Watcher watcher;
  for (const char* site :
       {"embedding", "encoder.layers.0.self_attn.weights", "encoder.layers.1.residual_mid"}) {
    watcher.replacements[site] = zero;
  }
  CHECK(Run(m, &watcher).logits != before.logits);
  const Run after(m);
  CHECK(after.logits == before.logits);
  CHECK(after.gradients == before.gradients);
}

TEST_CASE("a replaced value is a constant of the tape", "[autograd]") {
  struct Doubler : Hooks {
    bool replace(std::string_view, const Shape&, MatrixView value) override {
      for (std::int64_t i = 0; i < value.elements(); ++i) value.data[i] *= 2;
      return true;
    }
  } doubler;
  Tape tape;
  const Var x = tape.variable(Tensor({2}, {3, 4}));
  const Var y = site(&doubler, "here", x);
  CHECK(y.value().data[1] == 8);
  CHECK(x.value().data[1] == 4);
  CHECK_FALSE(y.needs_grad());
  const Var untouched = site(nullptr, "here", x);
  CHECK(untouched.value().data == x.value().data);
  CHECK(tape.nodes() == 2);  // without hooks nothing is recorded
}

TEST_CASE("a site has a name, or is one position of it", "[autograd]") {
  CHECK(position_of("layer.0.attention", "layer.0.attention") == 0);
  CHECK(position_of("layer.0.attention.3", "layer.0.attention") == 3);
  CHECK_FALSE(position_of("layer.0.attention43", "layer.0.attention"));
  CHECK_FALSE(position_of("layer.0.attention.x", "layer.0.attention"));
  CHECK_FALSE(position_of("layer.1.attention", "layer.0.attention"));
}
