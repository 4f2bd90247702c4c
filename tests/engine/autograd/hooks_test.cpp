// Hooks, on the forward pass of a whole model.
#include "thimble/engine/hooks.h"

#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "catch.h"
#include "engine/model/transformer.h"
#include "rounding.h"
#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

using namespace thimble;

namespace {

using Values = std::vector<Real>;
using Tokens = std::vector<std::int32_t>;

constexpr std::int64_t kTime = 5, kVocabulary = 7;
const Tokens kTokens{1, 2, 3, 4, 5, 6, 0, 1, 0, 0};
const Tokens kLengths{5, 3};
const Site kWeights{SiteKind::attention_weights, 1}, kHeadOutputs{SiteKind::head_output, 1},
    kLogits{SiteKind::logits};

struct Recorder : Hooks {
  void observe(Site site, const Shape& shape, ConstMatrixView value) override {
    seen[site] = Values(value.data, value.data + value.elements());
    shapes[site] = shape;
    order.push_back(site);
  }
  bool replace(Site site, const Shape& shape, MatrixView value) override {
    const auto found = replacements.find(site);
    if (found == replacements.end()) return false;
    found->second(shape, value);
    return true;
  }
  std::map<Site, Values> seen;
  std::map<Site, Shape> shapes;
  std::vector<Site> order;
  std::map<Site, std::function<void(const Shape&, MatrixView)>> replacements;
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

// One forward and backward pass, as in training.
struct TrainingPass {
  explicit TrainingPass(const Transformer& m, Hooks* hooks = nullptr) : gradients(m.parameters().size()) {
    Tape tape;
    tape.bind(m.parameters(), gradients);
    const Var y = m(tape, {.tokens = kTokens, .length = kTime, .lengths = kLengths},
                    {.training = true, .seed = 3, .hooks = hooks});
    Tensor seed(y.shape());
    for (std::size_t i = 0; i < seed.values().size(); ++i) seed.data()[i] = std::sin(static_cast<Real>(i));
    tape.backward(y, seed.matrix());
    logits.assign(y.value().data, y.value().data + y.value().elements());
  }
  // Returns the largest gradient of the parameter of this name.
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

// Writes weights that differ from 0 and 1, for which the gradient of softmax is 0.
void lean_on_first_key(const Shape& shape, MatrixView weights) {
  const Real rest = Real(0.25) / static_cast<Real>(shape[3] - 1);
  for (std::int64_t r = 0; r < weights.rows; ++r) {
    for (std::int64_t j = 0; j < shape[3]; ++j) weights.row(r)[j] = j == 0 ? Real(0.75) : rest;
  }
}

void zero(const Shape&, MatrixView value) { std::fill_n(value.data, value.elements(), Real{0}); }

}  // namespace

TEST_CASE("every site of a pass is observed, in order, with its shape", "[autograd]") {
  const Transformer m = model(false);
  Recorder recorder;
  const TrainingPass run(m, &recorder);
  std::vector<Site> expected{{SiteKind::tokens}, {SiteKind::embedding}};
  for (const std::int32_t layer : {0, 1})
    for (const SiteKind kind :
         {SiteKind::projections, SiteKind::attention_weights, SiteKind::head_output,
          SiteKind::attention_output, SiteKind::residual_mid, SiteKind::feed_forward_input,
          SiteKind::feed_forward_pre, SiteKind::feed_forward_post, SiteKind::feed_forward_output,
          SiteKind::residual_out})
      expected.push_back({kind, layer});
  expected.insert(expected.end(), {{SiteKind::encoder_output}, {SiteKind::logits}});
  CHECK((recorder.order == expected));
  CHECK(recorder.shapes[kWeights] == Shape{2, 3, kTime, kTime});
  CHECK(recorder.shapes[{SiteKind::embedding}] == Shape{2, kTime, 12});
  CHECK(recorder.shapes[{SiteKind::head_output, 0}] == Shape{2, kTime, 12});
  CHECK(recorder.shapes[kLogits] == Shape{2, kTime, kVocabulary});
  CHECK(recorder.seen[kLogits] == run.logits);
  CHECK(recorder.seen[{SiteKind::residual_out, 1}] == recorder.seen[{SiteKind::encoder_output}]);
}

TEST_CASE("observing changes neither values nor gradients", "[autograd]") {
  const Transformer m = model(true, 0.3);
  Recorder recorder;
  const TrainingPass observed(m, &recorder), alone(m);
  CHECK(observed.logits == alone.logits);
  CHECK(observed.gradients == alone.gradients);
}

TEST_CASE("attention weights are those of the mask, before dropout", "[autograd]") {
  for (const bool causal : {false, true}) {
    for (const double dropout : {0.0, 0.5}) {
      CAPTURE(causal, dropout);
      Recorder recorder;
      const TrainingPass run(model(causal, dropout), &recorder);
      for (const std::int32_t layer : {0, 1}) {
        const Values& weights = recorder.seen.at({SiteKind::attention_weights, layer});
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
  Recorder recorder;
  recorder.replacements[kWeights] = look_at_first_key;
  const TrainingPass run(m, &recorder), untouched(m);
  CHECK(run.logits != untouched.logits);
  CHECK(recorder.seen[kWeights][0] == 1);  // observe sees the replacement
  CHECK(recorder.seen[kWeights][1] == 0);
  const Values& heads = recorder.seen[kHeadOutputs];  // the value of token 0, at every query
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
    Recorder recorder;
    recorder.replacements[kWeights] = lean_on_first_key;
    const TrainingPass run(m, &recorder), untouched(m);
    const std::string name = "encoder.layers.1.self_attn.in_proj_weight";
    const auto& entries = m.parameters().entries();
    const auto entry = std::ranges::find(entries, name, &ParameterStore::Entry::name);
    const auto largest = [&](const TrainingPass& r, std::size_t part) {  // of the query, key or value third
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
  Recorder recorder;
  recorder.replacements[{SiteKind::residual_out, 0}] = zero;
  const TrainingPass run(m, &recorder);
  // No input is left: every position has the logits of the first.
  for (std::size_t i = 0; i < run.logits.size(); i += kVocabulary)
    REQUIRE(same_but_for_rounding(m.config(), {&run.logits[i], &run.logits[i] + kVocabulary},
                                  {run.logits.begin(), run.logits.begin() + kVocabulary}));
  CHECK(run.gradient(m, "token_embedding.weight") == 0);
  CHECK(run.gradient(m, "encoder.layers.0.linear2.bias") == 0);
  CHECK(run.gradient(m, "encoder.layers.1.linear1.bias") > 1e-4);
  CHECK(recorder.seen[{SiteKind::residual_out, 0}] == Values(2 * kTime * 12, 0));
}

TEST_CASE("a replacement leaves no trace in the next pass", "[autograd]") {
  const Transformer m = model(true);
  const TrainingPass before(m);
  Recorder recorder;
  for (const Site site :
       {Site{SiteKind::embedding}, {SiteKind::attention_weights, 0}, {SiteKind::residual_mid, 1}})
    recorder.replacements[site] = zero;
  CHECK(TrainingPass(m, &recorder).logits != before.logits);
  const TrainingPass after(m);
  CHECK(after.logits == before.logits);
  CHECK(after.gradients == before.gradients);
}

TEST_CASE("a replaced value is a leaf of the tape", "[autograd]") {
  struct Doubler : Hooks {
    bool replace(Site, const Shape&, MatrixView value) override {
      for (std::int64_t i = 0; i < value.elements(); ++i) value.data[i] *= 2;
      return true;
    }
  } doubler;
  Tape tape;
  const Var x = tape.variable(Tensor({2}, {3, 4}));
  const Var y = hook_point(&doubler, {SiteKind::embedding}, x);
  CHECK(y.value().data[1] == 8);
  CHECK(x.value().data[1] == 4);
  const Var untouched = hook_point(nullptr, {SiteKind::embedding}, x);
  CHECK(untouched.value().data == x.value().data);
  CHECK(tape.nodes() == 2);  // without hooks nothing is recorded
  tape.backward(mul(y, y), Tensor({1, 2}, {1, 1}).matrix());
  CHECK(y.grad().data[1] == 16);
  CHECK(x.grad().data[1] == 0);
}

TEST_CASE("gradients pass by what is replaced of a site, and by nothing else", "[autograd]") {
  // Replaces nothing, but says that all of the first half of the rows is.
  struct FirstHalf : Hooks {
    bool replace(Site, const Shape&, MatrixView value) override {
      left = Tensor({value.rows, value.cols});
      for (std::int64_t i = 0; i < value.elements(); ++i) left.data()[i] = 2 * i < value.elements() ? 0 : 1;
      return true;
    }
    ConstMatrixView kept(Site) const override { return std::as_const(left).matrix(); }
    Tensor left;
  } half;
  Tape tape;
  const Var x = tape.variable(Tensor({2, 1}, {3, 4})), y = hook_point(&half, {SiteKind::embedding}, x);
  tape.backward(mul(y, y), Tensor({2, 1}, {1, 1}).matrix());
  CHECK(x.grad().row(0)[0] == 0);
  CHECK(x.grad().row(1)[0] == 8);

  // Of one head, four queries and four keys, the first two queries.
  const auto gradient = [](Hooks* hooks) {
    Tensor q({1, 4, 3}), k({1, 4, 3}), v({1, 4, 3});
    for (std::size_t i = 0; i < 12; ++i) {
      q.data()[i] = std::sin(static_cast<Real>(i));
      k.data()[i] = std::cos(static_cast<Real>(3 * i));
      v.data()[i] = std::sin(static_cast<Real>(5 * i));
    }
    AttentionOptions options;
    options.hooks = hooks;
    Tape pass;
    const Var queries = pass.variable(q);
    const Var z = attention(queries, pass.variable(k), pass.variable(v), options);
    pass.backward(z, q.matrix());
    return Values(queries.grad().data, queries.grad().data + 12);
  };
  const Values plain = gradient(nullptr), replaced = gradient(&half);
  for (std::size_t i = 0; i < 12; ++i) {
    CAPTURE(i);
    CHECK(plain[i] != 0);
    CHECK(replaced[i] == (i < 6 ? 0 : plain[i]));
  }
}

TEST_CASE("positions of a site are parts of one value", "[autograd]") {
  const Site whole{SiteKind::head_output, 2}, part{SiteKind::head_output, 2, 3};
  CHECK((part.start() == whole));
  CHECK((part != whole));
  CHECK((part.start() != Site{SiteKind::head_output, 1}));
  CHECK((part.start() != Site{SiteKind::attention_weights, 2}));
}
