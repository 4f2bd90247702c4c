// Gradient checks of a parameter store, and of all ops and models.
#include "source_directory.h"
#include "thimble/engine/gradcheck.h"

#ifdef THIMBLE_DOUBLE

#include <algorithm>
#include <cmath>
#include <iterator>
#include <regex>
#include <set>

#include "catch.h"
#include "engine/ops/gradcheck_cases.h"
#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"
#include "thimble/train/file.h"
#include "thimble/train/train.h"
#include "train/config/small_config.h"

using namespace thimble;
using enum GradcheckVerdict;

namespace {

// A loss over a matrix of 5000 elements and a vector: sum of sin(w) times fixed numbers, plus half the
// squares of v. The gradient of `wrong` elements from `first` on is multiplied by `factor`.
struct Toy {
  ParameterStore store;
  Parameter w = store.add("w", {50, 100}), v = store.add("v", {3}), unused = store.add("unused", {4});
  std::int64_t first = 0, wrong = 0;
  Real factor = 1;

  Toy() {
    for (const Parameter p : {w, v, unused}) init_normal(store, p, 3, 1);
  }

  Var loss(Tape& tape) const {
    const Var a = tape.parameter(w), b = tape.parameter(v);
    const auto weight = [](std::int64_t i) { return Real(1) + Real(i % 7) / 7; };
    return record(
        "toy", {1}, {a, b},
        [&](Var y) {
          *y.value().data = 0;
          for (std::int64_t i = 0; i < 5000; ++i) *y.value().data += weight(i) * std::sin(a.value().data[i]);
          for (std::int64_t i = 0; i < 3; ++i) *y.value().data += b.value().data[i] * b.value().data[i] / 2;
        },
        [a, b, weight, from = first, to = first + wrong, times = factor](Var y) {
          for (std::int64_t i = 0; i < 5000; ++i) {
            const Real slope = weight(i) * std::cos(a.value().data[i]) * (i >= from && i < to ? times : 1);
            a.grad().data[i] += *y.grad().data * slope;
          }
          for (std::int64_t i = 0; i < 3; ++i) b.grad().data[i] += *y.grad().data * b.value().data[i];
        });
  }

  std::vector<GradcheckResult> check() {
    return gradcheck(store, [this](Tape& tape) { return loss(tape); });
  }
};

std::set<std::string> ops_declared() {
  const std::string header = read_file(source_directory() + "/include/thimble/engine/ops.h");
  const std::regex declaration("(?:^|\n)Var ([a-z_0-9]+)\\(");
  std::set<std::string> names;
  for (std::sregex_iterator i(header.begin(), header.end(), declaration), end; i != end; ++i)
    names.insert((*i)[1]);
  return names;
}

}  // namespace

TEST_CASE("a parameter that the loss never reaches is named", "[autograd]") {
  Toy toy;
  const std::vector<Real> before(toy.store.values().begin(), toy.store.values().end());
  const auto results = toy.check();
  REQUIRE(results.size() == 3);
  CHECK(results[0].input == "w");
  CHECK(results[0].verdict == ok);
  CHECK(results[1].verdict == ok);
  CHECK(results[2].input == "unused");
  CHECK(results[2].verdict == wrong);
  CHECK(results[2].reason == "the loss never reaches this parameter");
  CHECK(std::equal(before.begin(), before.end(), toy.store.values().begin()));  // the values are restored
}

TEST_CASE("a wrong gradient of a large parameter is caught", "[autograd]") {
  const std::tuple<const char*, std::int64_t, std::int64_t, Real> faults[] = {
      {"everywhere", 0, 5000, 2},
      {"half of it, slightly", 0, 2500, Real(1.0001)},
      {"one row", 1200, 100, -1},
      {"the last element", 4999, 1, 0}};
  for (const auto& [what, first, count, factor] : faults) {
    CAPTURE(what);
    Toy toy;
    toy.first = first;
    toy.wrong = count;
    toy.factor = factor;
    const auto results = toy.check();
    CHECK(results[0].verdict == wrong);
    CHECK(results[1].verdict == ok);
  }
}

TEST_CASE("one wrong element among thousands shows along random directions", "[autograd]") {
  Toy toy;
  toy.first = 4999;
  toy.wrong = 1;
  toy.factor = 0;
  CHECK_THAT(toy.check()[0].index, StartsWith("direction "));  // the elements looked at are others
}

TEST_CASE("a wrong gradient of a small parameter is caught at its element", "[autograd]") {
  ParameterStore store;
  const Parameter p = store.add("p", {2, 3});
  init_normal(store, p, 3, 1);
  const auto results = gradcheck(store, [p](Tape& tape) {
    const Var x = tape.parameter(p);
    return record(
        "toy", {1}, {x},
        [&](Var y) {
          *y.value().data = 0;
          for (int i = 0; i < 6; ++i) *y.value().data += std::exp(x.value().data[i]);
        },
        [x](Var y) {
          for (int i = 0; i < 6; ++i)
            x.grad().data[i] += *y.grad().data * (i == 4 ? 1 : std::exp(x.value().data[i]));
        });
  });
  CHECK(results[0].verdict == wrong);
  CHECK(results[0].index == "[1, 1]");
}

TEST_CASE("a loss that is not a single number is refused", "[autograd]") {
  ParameterStore store;
  const Parameter p = store.add("p", {2});
  CHECK_THROWS_AS(gradcheck(store, [p](Tape& tape) { return tape.parameter(p); }), ShapeError);
}

namespace {

void check_parameters(const Config& config, std::size_t least) {
  CAPTURE(to_yaml(config));
  const auto results = check_model(config);
  CHECK(results.size() >= least);
  for (const GradcheckResult& result : results) {
    CAPTURE(result.input, result.index, result.analytic, result.numeric, result.reason);
    CHECK(result.verdict == ok);
  }
}

}  // namespace

TEST_CASE("every parameter of whole models, with every mechanism", "[autograd][slow]") {
  std::vector<Config> configs = configs_of_heads(rich_config());
  std::ranges::copy(configs_of_parts(rich_config()), std::back_inserter(configs));
  configs.push_back(convolution_config(rich_config()));
  configs.push_back(convolution_config(small_config()));
  for (const Config& config : configs) check_parameters(config, 16);
  for (const Config& config : configs_of_language_models(rich_config())) check_parameters(config, 11);
  Config convolution = convolution_config(rich_config());
  convolution.model.bias = false;
  check_parameters(convolution, 10);
}

TEST_CASE("every parameter of encoder-decoders", "[autograd][slow]") {
  for (Config config : configs_of_heads(writing_config())) {
    for (const NormOrder norm : {NormOrder::post, NormOrder::pre}) {
      config.model.norm = norm;
      // Each of three attentions has a weight and a bias of projections.
      check_parameters(config, config.model.attention.in_proj ? 34 : 34 - 6);
    }
  }
}

TEST_CASE("every parameter of recurrent models", "[autograd]") {
  for (const Score score : {Score::additive, Score::dot, Score::general, Score::none}) {
    Config config = recurrent_config(score);
    config.model.d_model = 8;
    config.model.dropout = 0.1;
    if (score != Score::none) config.model.attention.dropout = 0.1;
    check_parameters(config, 18);
  }
}

TEST_CASE("every op has cases, and all of them pass", "[autograd]") {
  std::set<std::string> seen;
  std::size_t inputs = 0;
  for (const GradcheckCase& c : gradcheck_cases()) {
    seen.insert(c.op);
    for (const GradcheckResult& result : gradcheck(c.op, c.f, c.inputs)) {
      CAPTURE(c.op, c.variant, result.input, result.index, result.analytic, result.numeric, result.reason);
      CHECK(result.verdict == ok);
      CHECK(result.worst_error <= 1e-6);
      ++inputs;
    }
  }
  CHECK(seen == ops_declared());
  CHECK(seen.size() >= 18);
  CHECK(inputs >= 60);
}

TEST_CASE("the cases hold for other random weights too", "[autograd]") {
  for (const std::uint64_t seed : {2, 3}) {
    for (const GradcheckCase& c : gradcheck_cases()) {
      for (const GradcheckResult& result : gradcheck(c.op, c.f, c.inputs, seed)) {
        CAPTURE(seed, c.op, c.variant, result.input, result.worst_error, result.reason);
        CHECK(result.verdict == ok);
      }
    }
  }
}

TEST_CASE("gradients flow through what is left of a site that is replaced in part", "[autograd]") {
  // Replaces every third element.
  struct Third : Hooks {
    bool replace(Site, const Shape&, MatrixView value) override {
      left = Tensor({value.rows, value.cols});
      for (std::int64_t i = 0; i < value.elements(); ++i) {
        left.data()[i] = i % 3 == 0 ? 0 : 1;
        if (i % 3 == 0) value.data[i] = Real(0.25);
      }
      return true;
    }
    ConstMatrixView kept(Site) const override { return std::as_const(left).matrix(); }
    Tensor left;
  };
  const std::vector<GradcheckInput> inputs{normal("q", {2, 4, 6}), normal("k", {2, 4, 6}),
                                           normal("v", {2, 4, 6}), normal("scores", {2, 2, 4, 4})};
  AttentionOptions options;
  options.heads = options.kv_heads = 2;
  for (const bool causal : {false, true}) {
    options.mask.causal = causal;
    for (const bool scores : {false, true}) {
      CAPTURE(causal, scores);
      Third weights, output;
      options.hooks = &weights;
      const auto f = [&](Tape&, std::span<const Var> in) {
        const Var z = scores ? attend(in[3], in[2], options) : attention(in[0], in[1], in[2], options);
        return hook_point(&output, {SiteKind::head_output}, z);
      };
      for (const GradcheckResult& result : gradcheck("replaced in part", f, inputs)) {
        CAPTURE(result.input, result.analytic, result.numeric, result.reason);
        const bool reads = result.input == "v" || (result.input == "scores") == scores;
        CHECK((result.verdict == ok) == reads);
      }
    }
  }
}

#endif  // THIMBLE_DOUBLE
