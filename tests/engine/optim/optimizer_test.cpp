#include "thimble/engine/optimizer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "catch.h"

using namespace thimble;

namespace {

constexpr OptimizerKind kKinds[] = {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd};
constexpr double kRounding = sizeof(Real) == 8 ? 1e-13 : 1e-5;

// A store with a table, a matrix of several segments, a vector and a scalar.
struct SmallModel {
  ParameterStore store;
  Parameter table = store.add("table", {5, 3}), matrix = store.add("matrix", {70, 70}),
            vector = store.add("vector", {7}), scalar = store.add("scalar", {});
  std::vector<Real> gradients;

  SmallModel() {
    for (const Parameter p : {table, matrix, vector, scalar}) init_normal(store, p, 1, 1);
    gradients.resize(store.size());
  }
  void step(Optimizer& optimizer, double lr, double scale = 1) {
    optimizer.begin_step(lr, scale);
    for (const auto& segment : optimizer.segments()) optimizer.update(segment, store.values(), gradients);
  }
  std::vector<Real> copy(Parameter p) const { return {store.values(p).begin(), store.values(p).end()}; }
};

// One number under each optimizer, in double, by the formula of its paper.
double textbook(const OptimizerConfig& c, double p, const std::vector<double>& gradients, double lr,
                bool decays) {
  double m = 0, v = 0;
  const double decay = decays ? c.weight_decay : 0;
  for (std::size_t t = 1; t <= gradients.size(); ++t) {
    double g = gradients[t - 1];
    if (c.name == OptimizerKind::adamw) p *= 1 - lr * decay;
    if (c.name != OptimizerKind::adamw) g += decay * p;
    if (c.name == OptimizerKind::sgd) {
      m = t == 1 ? g : c.momentum * m + g;
      p -= lr * m;
      continue;
    }
    m = c.beta1 * m + (1 - c.beta1) * g;
    v = c.beta2 * v + (1 - c.beta2) * g * g;
    const double corrected_m = m / (1 - std::pow(c.beta1, static_cast<double>(t)));
    const double corrected_v = v / (1 - std::pow(c.beta2, static_cast<double>(t)));
    p -= lr * corrected_m / (std::sqrt(corrected_v) + c.epsilon);
  }
  return p;
}

}  // namespace

TEST_CASE("one call makes a step of all segments, at a share of the learning rate", "[optim]") {
  for (const OptimizerKind kind : kKinds) {
    SmallModel one, parts;
    const OptimizerConfig config{.name = kind, .lr = 0.25, .weight_decay = 0.125};
    Optimizer optimizer(config, one.store), by_parts(config, parts.store);
    for (std::size_t i = 0; i < one.gradients.size(); ++i)
      one.gradients[i] = parts.gradients[i] = static_cast<Real>(i % 7) - 3;
    for (const double factor : {1.0, 0.5}) {
      optimizer.step(one.store.values(), one.gradients, factor);
      parts.step(by_parts, factor * 0.25);
    }
    CHECK(one.store.hash() == parts.store.hash());
    CHECK(optimizer.steps() == 2);
  }
}

TEST_CASE("segments cover every parameter once and nothing between them", "[optim]") {
  const SmallModel model;
  const Optimizer optimizer({}, model.store);
  std::vector<int> covered(model.store.size());
  for (const auto& segment : optimizer.segments()) {
    CHECK(segment.size > 0);
    CHECK(segment.offset * sizeof(Real) % kAlignment == 0);
    for (std::size_t i = 0; i < segment.size; ++i) ++covered.at(segment.offset + i);
  }
  CHECK(optimizer.segments().size() > model.store.entries().size());  // the matrix is cut
  std::vector<int> expected(model.store.size());
  for (const auto& entry : model.store.entries())
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(entry.offset), entry.size(), 1);
  CHECK(covered == expected);
}

TEST_CASE("each optimizer follows its formula for several steps", "[optim]") {
  for (const OptimizerKind kind : kKinds) {
    for (const double decay : {0.0, 0.3}) {
      OptimizerConfig config;
      config.name = kind;
      config.weight_decay = decay;
      config.epsilon = 1e-3;
      CAPTURE(static_cast<int>(kind), decay);
      SmallModel model;
      Optimizer optimizer(config, model.store);
      const std::vector<Real> start(model.store.values().begin(), model.store.values().end());
      std::vector<std::vector<double>> history(model.store.size());
      for (int t = 1; t <= 5; ++t) {
        for (std::size_t i = 0; i < model.gradients.size(); ++i) {
          model.gradients[i] = static_cast<Real>(std::sin(static_cast<double>(i) + t * t) - 0.3);
          history[i].push_back(static_cast<double>(model.gradients[i]) * 0.5);  // clipped by half
        }
        model.step(optimizer, 0.01, 0.5);
      }
      CHECK(optimizer.steps() == 5);
      double worst = 0;
      for (const auto& entry : model.store.entries()) {
        for (std::size_t i = entry.offset; i < entry.offset + entry.size(); ++i) {
          const double want =
              textbook(config, static_cast<double>(start[i]), history[i], 0.01, entry.shape.rank() >= 2);
          worst = std::max(worst, std::abs(static_cast<double>(model.store.values()[i]) - want));
        }
      }
      CHECK(worst < kRounding);
    }
  }
}

TEST_CASE("weight decay is for matrices only", "[optim]") {
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    SmallModel model;
    Optimizer optimizer({.name = kind, .weight_decay = 0.5}, model.store);
    const auto table = model.copy(model.table), matrix = model.copy(model.matrix),
               vector = model.copy(model.vector), scalar = model.copy(model.scalar);
    model.step(optimizer, 0.1);  // with gradients of zero
    CHECK(model.copy(model.vector) == vector);
    CHECK(model.copy(model.scalar) == scalar);
    const auto shrunk = [](const std::vector<Real>& before, const std::vector<Real>& after) {
      bool all = true;
      for (std::size_t i = 0; i < before.size(); ++i) all = all && std::abs(after[i]) < std::abs(before[i]);
      return all;
    };
    if (kind != OptimizerKind::adam) {  // Adam moves by the learning rate, across zero where p is small
      CHECK(shrunk(table, model.copy(model.table)));
      CHECK(shrunk(matrix, model.copy(model.matrix)));
    }
    CHECK(model.copy(model.matrix) != matrix);
  }
}

TEST_CASE("the moments start at zero, with the layout of the parameters", "[optim]") {
  SmallModel model;
  Optimizer adam({}, model.store), sgd({.name = OptimizerKind::sgd}, model.store);
  CHECK((adam.moments().size() == 2 && sgd.moments().size() == 1));
  for (Optimizer* optimizer : {&adam, &sgd})
    for (const Optimizer::Moment& moment : optimizer->moments())
      CHECK(std::ranges::equal(moment.values, std::vector<Real>(model.store.size())));
  std::ranges::fill(model.gradients, Real(2));
  model.step(adam, 0);
  model.step(sgd, 0);
  CHECK_THAT(adam.moments()[0].values[0], WithinAbs(0.2, 1e-6));
  CHECK_THAT(adam.moments()[1].values[0], WithinAbs(0.004, 1e-6));
  CHECK(sgd.moments()[0].values[0] == 2);
}

TEST_CASE("clipping brings the norm down to the limit and never up", "[optim]") {
  CHECK(clip_factor(3, 0) == 1);  // off
  CHECK(clip_factor(3, 5) == 1);
  CHECK(clip_factor(0, 5) == 1);
  CHECK_THAT(clip_factor(10, 5), WithinRel(5 / (10 + 1e-6), 1e-15));
  CHECK_THAT(clip_factor(1e30, 1), WithinRel(1e-30, 1e-12));
  CHECK(clip_factor(5, 5) * 5 <= 5);
}
