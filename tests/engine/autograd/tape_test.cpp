#include "thimble/engine/tape.h"

#include <cmath>
#include <limits>
#include <vector>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

using namespace thimble;

namespace {

constexpr Real kNotANumber = std::numeric_limits<Real>::quiet_NaN();

std::vector<Real> elements(MatrixView m) { return {m.data, m.data + m.elements()}; }

const Tensor kX({2, 2}, {1, 2, 3, 4});

}  // namespace

TEST_CASE("a leaf copies its tensor", "[autograd]") {
  Tape tape;
  Tensor source = kX;
  const Var c = tape.constant(source), v = tape.variable(source);
  source.data()[0] = 9;
  CHECK(elements(c.value()) == std::vector<Real>{1, 2, 3, 4});
  CHECK(elements(v.value()) == std::vector<Real>{1, 2, 3, 4});
  CHECK(v.shape() == Shape{2, 2});
  CHECK_FALSE(c.needs_grad());
  CHECK(v.needs_grad());
  CHECK(elements(v.grad()) == std::vector<Real>(4, 0));
  CHECK(&v.tape() == &tape);
  CHECK(tape.nodes() == 2);
}

TEST_CASE("a gradient is the sum over all uses", "[autograd]") {
  Tape tape;
  const Var x = tape.variable(kX);
  const Var twice = add(x, x), thrice = scale(x, 3);
  tape.backward(add(twice, thrice), kX.matrix());
  CHECK(elements(x.grad()) == std::vector<Real>{5, 10, 15, 20});
}

TEST_CASE("a diamond sends each gradient once through each path", "[autograd]") {
  Tape tape;
  const Var x = tape.variable(Tensor({1}, {2}));
  Var y = x;
  for (int i = 0; i < 10; ++i) y = add(y, y);  // 2^10 paths
  tape.backward(y);
  CHECK(x.grad().data[0] == 1024);
}

TEST_CASE("what the loss does not use gets no gradient", "[autograd]") {
  Tape tape;
  const Var x = tape.variable(kX), unused = tape.variable(kX);
  const Var other = scale(x, 100);
  tape.backward(scale(x, 2), kX.matrix());
  CHECK(elements(unused.grad()) == std::vector<Real>(4, 0));
  CHECK(elements(other.grad()) == std::vector<Real>(4, 0));
  CHECK(elements(x.grad()) == std::vector<Real>{2, 4, 6, 8});
}

TEST_CASE("gradients flow past constants and not into them", "[autograd]") {
  Tape tape;
  const Var c = tape.constant(kX), x = tape.variable(kX);
  const Var sum = add(c, x), fixed = scale(c, 2);
  CHECK(sum.needs_grad());
  CHECK_FALSE(fixed.needs_grad());
  tape.backward(sum, kX.matrix());
  CHECK(elements(x.grad()) == std::vector<Real>{1, 2, 3, 4});
  CHECK_THROWS_WITH(fixed.grad(), "scale: this value does not require a gradient");
  CHECK_THROWS_AS(tape.backward(fixed, kX.matrix()), Error);
}

TEST_CASE("two backward passes add up", "[autograd]") {
  Tape tape;
  const Var x = tape.variable(Tensor({1}, {2}));
  tape.backward(scale(x, 3));
  tape.backward(scale(x, 4), Real(10));
  CHECK(x.grad().data[0] == 43);
}

TEST_CASE("a loss of several elements needs a seed of its shape", "[autograd]") {
  Tape tape;
  const Var x = tape.variable(kX), y = scale(x, 2);
  CHECK_THROWS_AS(tape.backward(y), ShapeError);
  CHECK_THROWS_WITH(tape.backward(y), "backward: the loss has shape (2, 2), not one element; give a seed");
  const Tensor wrong({1, 4});
  CHECK_THROWS_AS(tape.backward(y, wrong.matrix()), ShapeError);
  CHECK_THROWS_WITH(tape.backward(y, wrong.matrix()),
                    "backward: seed (1, 4) must have the shape (2, 2) of the result");
  const Tensor narrow({2, 1});
  CHECK_THROWS_AS(tape.backward(y, narrow.matrix()), ShapeError);
  CHECK(elements(x.grad()) == std::vector<Real>(4, 0));
  CHECK_THROWS_AS(y.item(), ShapeError);
  CHECK_THROWS_WITH(y.item(), "item: shape (2, 2) does not have exactly one element");
  CHECK(tape.constant(Tensor({1, 1, 1}, {5})).item() == 5);
}

TEST_CASE("a Var from before the last rewind is refused", "[autograd]") {
  Tape tape;
  const Var x = tape.variable(kX);
  tape.rewind();
  CHECK(tape.nodes() == 0);
  const Var fresh = tape.variable(kX);  // takes the same place
  CHECK_THROWS_AS(x.value(), Error);
  CHECK_THROWS_WITH(x.value(), "tape: this Var belongs to another tape, or was invalidated by rewind()");
  CHECK_THROWS_AS(x.shape(), Error);
  CHECK_THROWS_AS(x.grad(), Error);
  CHECK_THROWS_AS(x.needs_grad(), Error);
  CHECK_THROWS_AS(add(fresh, x), Error);
  CHECK_THROWS_AS(tape.backward(x), Error);
  CHECK(elements(fresh.value()) == std::vector<Real>{1, 2, 3, 4});
}

TEST_CASE("a Var of another tape is refused", "[autograd]") {
  Tape tape, other;
  const Var x = tape.variable(kX), y = other.variable(kX);
  CHECK_THROWS_WITH(add(x, y), "tape: this Var belongs to another tape, or was invalidated by rewind()");
  CHECK_THROWS_AS(tape.backward(y, kX.matrix()), Error);
  CHECK_THROWS_WITH(Var().value(), "Var is empty");
}

TEST_CASE("an inference tape keeps values and nothing for backward", "[autograd]") {
  Tape tape(Tape::Mode::inference);
  const Var x = tape.variable(kX), y = scale(x, 2);
  CHECK(elements(y.value()) == std::vector<Real>{2, 4, 6, 8});
  CHECK_FALSE(y.needs_grad());
  CHECK_THROWS_AS(tape.backward(y, kX.matrix()), Error);
  CHECK_THROWS_WITH(tape.backward(y, kX.matrix()), "backward: this tape is in inference mode");

  struct Closure {
    char saved[1000];
    void operator()(Var) const {}
  };
  const auto room_for_op = [](Tape& on) {
    const Var v = on.variable(kX);
    const std::size_t before = on.bytes();
    record(
        "op", {1}, {v}, [](Var) {}, Closure{});
    return on.bytes() - before;
  };
  Tape training, inference(Tape::Mode::inference);
  CHECK(room_for_op(inference) == 64);  // the value
  CHECK(room_for_op(training) == 64 + 1024);
}

TEST_CASE("a tape takes the same memory in every round", "[autograd]") {
  Tape tape;
  const Tensor large({300, 400});
  std::size_t bytes = 0;
  for (int round = 0; round < 5; ++round) {
    tape.rewind();
    Var y = tape.variable(large);
    for (int i = 0; i < 4; ++i) y = scale(y, 1);
    tape.backward(y, large.matrix());
    if (round == 1) bytes = tape.bytes();
    if (round > 1) CHECK(tape.bytes() == bytes);
  }
}

TEST_CASE("a parameter is one node, however often it is asked for", "[autograd]") {
  ParameterStore store;
  const Parameter p = store.add("p", {2}), q = store.add("q", {3});
  store.values(p)[0] = 5;
  std::vector<Real> gradients(store.size(), 100);
  Tape tape;
  CHECK_THROWS_WITH(tape.parameter(p), "tape: bind() a parameter store before using its parameters");
  tape.bind(store, gradients);
  CHECK_FALSE(tape.used(p));
  const Var first = tape.parameter(p), again = tape.parameter(p);
  CHECK(tape.nodes() == 1);
  CHECK(first.value().data == store.values(p).data());
  CHECK(again.value().data == first.value().data);
  CHECK(again.grad().data == gradients.data() + store.entry(p).offset);
  CHECK(tape.used(p));
  CHECK_FALSE(tape.used(q));
  const Tensor seed({2}, {1, 2});
  tape.backward(add(first, scale(again, 2)), seed.matrix());
  CHECK(gradients[0] == 103);  // added to what was there
  CHECK(gradients[1] == 106);
  CHECK(gradients[store.entry(q).offset] == 100);

  tape.rewind();
  CHECK_FALSE(tape.used(p));
  CHECK_THROWS_AS(first.value(), Error);
  CHECK(tape.parameter(p).value().data[0] == 5);  // still bound
}

TEST_CASE("without a gradient buffer parameters are constants", "[autograd]") {
  ParameterStore store;
  const Parameter p = store.add("p", {2});
  Tape tape;
  tape.bind(store, {});
  CHECK_FALSE(tape.parameter(p).needs_grad());
  std::vector<Real> wrong(store.size() + 1);
  CHECK_THROWS_AS(tape.bind(store, wrong), ShapeError);
}

TEST_CASE("the first bad value is named by op and layer", "[autograd]") {
  Tape tape;
  tape.set_layer("first");
  const Var x = tape.variable(kX);
  CHECK_FALSE(tape.first_non_finite_value());
  tape.set_layer("second");
  const Var bad = scale(x, std::numeric_limits<Real>::infinity());
  tape.set_layer("third");
  add(bad, bad);
  REQUIRE(tape.first_non_finite_value());
  CHECK(std::string(tape.first_non_finite_value().op) == "scale");
  CHECK(std::string(tape.first_non_finite_value().layer) == "second");
  tape.rewind();
  CHECK(std::string(tape.layer()).empty());
  tape.set_layer("leaf");
  tape.constant(Tensor({2}, {1, kNotANumber}));
  CHECK(std::string(tape.first_non_finite_value().op) == "constant");
}

TEST_CASE("the first bad gradient, on the way back, is named by op and layer", "[autograd]") {
  Tape tape;
  tape.set_layer("first");
  const Var x = tape.variable(Tensor({1}, {0}));
  const Var y = scale(x, 2);
  tape.set_layer("second");
  const Var z = scale(y, std::numeric_limits<Real>::max());  // finite, but its gradient overflows below
  const Var loss = scale(z, 4);
  tape.backward(loss);
  CHECK_FALSE(tape.first_non_finite_value());
  REQUIRE(tape.first_non_finite_gradient());
  CHECK(std::string(tape.first_non_finite_gradient().op) == "scale");
  CHECK(std::string(tape.first_non_finite_gradient().layer) == "first");
}

TEST_CASE("kept values are a copy", "[autograd]") {
  Tape tape;
  std::vector<std::int32_t> tokens{1, 2, 3};
  const auto kept = tape.keep(std::span<const std::int32_t>(tokens));
  tokens[0] = 9;
  CHECK(std::vector(kept.begin(), kept.end()) == std::vector<std::int32_t>{1, 2, 3});
}

TEST_CASE("gradients whose memory is used again leave those of the leaves as they are", "[autograd]") {
  const auto gradients = [](Tape::RetainGrads keep) {
    Tape tape;
    const Var x = tape.variable(kX), weight = tape.variable(Tensor({2, 2}, {1, -1, 2, 3}));
    const Var bias = tape.variable(Tensor({2}, {1, 2}));
    Var y = x;
    for (int i = 0; i < 4; ++i) y = add(y, tanh(linear(layer_norm(y, bias, bias), weight, bias)));
    tape.backward(add(y, scale(x, 3)), kX.matrix(), keep);
    std::vector<std::vector<Real>> all;
    for (const Var& v : {x, weight, bias}) all.push_back(elements(v.grad()));
    return all;
  };
  CHECK(gradients(Tape::RetainGrads::leaves) == gradients(Tape::RetainGrads::all));
}

TEST_CASE("keeping only the gradients of leaves needs memory for the widest, not for all", "[autograd]") {
  const auto bytes = [](Tape::RetainGrads keep) {
    Tape tape;
    for (int run = 0; run < 3; ++run) {  // from the second on the arena holds what the run before used
      tape.rewind();
      Var y = tape.variable(Tensor({100, 1000}));
      for (int i = 0; i < 20; ++i) y = scale(y, 2);
      tape.backward(y, Tensor({100, 1000}).matrix(), keep);
    }
    return tape.bytes();
  };
  CHECK(bytes(Tape::RetainGrads::leaves) < bytes(Tape::RetainGrads::all) * 6 / 10);
}

TEST_CASE("a number that is not finite is found on any node, and its column named", "[autograd]") {
  Tape tape;
  tape.variable(kX);
  CHECK_FALSE(tape.first_non_finite_value());
  tape.variable(Tensor({2, 3}, {1, 2, 3, 4, kNotANumber, 6}));
  REQUIRE(tape.first_non_finite_value());
  CHECK(tape.first_non_finite_value().column == 1);

  Tape last;  // its gradients are searched from the last node on
  const Var y = last.variable(kX);
  const Tensor seed({2, 2}, {1, 1, 1, kNotANumber});
  last.backward(y, seed.matrix());
  REQUIRE(last.first_non_finite_gradient());
  CHECK(last.first_non_finite_gradient().column == 1);
}

TEST_CASE("backward names each parameter of the tape once, when its gradient is complete", "[autograd]") {
  ParameterStore store;
  for (const char* name : {"a", "b", "unused"}) init_normal(store, store.add(name, {2, 2}), 3, 1);
  AlignedVector<Real> gradients(store.size());
  const auto gradient = [&](Parameter p) {
    const auto first = gradients.begin() + static_cast<std::ptrdiff_t>(store.entry(p).offset);
    return std::vector<Real>(first, first + 4);
  };
  Tape tape;
  tape.bind(store, gradients);
  const Var a = tape.parameter({0}), b = tape.parameter({1});
  std::vector<std::pair<int, std::vector<Real>>> completed;
  tape.backward(add(mul(a, b), scale(add(a, b), 3)), kX.matrix(), Tape::RetainGrads::leaves,
                [&](Parameter p) { completed.emplace_back(p.index, gradient(p)); });
  REQUIRE(completed.size() == 2);
  CHECK((completed[0].first == 1 && completed[1].first == 0));  // the last one read is complete first
  for (const auto& [index, values] : completed) {
    CHECK(values == gradient({index}));
    CHECK(values != std::vector<Real>(4));
  }
}

TEST_CASE("a planning tape counts what a training tape takes, and runs nothing", "[autograd]") {
  ParameterStore store, shapes(Storage::shapes);
  for (ParameterStore* s : {&store, &shapes}) s->add("w", {3, 5});
  CHECK(shapes.size() == store.size());
  CHECK(shapes.count() == 15);
  CHECK(shapes.values().empty());
  AlignedVector<Real> gradients(store.size());
  const Tensor x({4, 5});
  const auto step = [&](Tape& tape) {
    tape.set_layer("first");
    const Var a = linear(tape.constant(x), tape.parameter({0}));
    tape.set_layer("second");
    const Var y = mul(tanh(a), tanh(a));
    tape.backward(y, Tensor({4, 3}).matrix(), Tape::RetainGrads::leaves);
  };
  Tape training, plan(Tape::Mode::plan);
  training.bind(store, gradients);
  step(training);
  for (int round = 0; round < 2; ++round) {
    plan.rewind();
    plan.bind_plan(shapes, true);
    step(plan);
    CHECK(plan.bytes() == training.bytes());
  }

  const std::vector<OpCost> costs = plan.costs();
  REQUIRE(costs.size() == 3);
  CHECK(costs[0].layer == "first");
  CHECK(costs[0].op == "linear");
  CHECK(costs[0].flops.forward == 2 * 4 * 5 * 3);
  CHECK(costs[0].flops.backward == 2 * costs[0].flops.forward);
  constexpr double kArrays = 2 * 4 * 4 * 3 * sizeof(Real);  // x, y, dy and dx of two calls
  CHECK((costs[1].traffic >= kArrays && costs[1].traffic < 1.2 * kArrays + 4 * kAlignment));
  CHECK(costs[1].layer == "second");
  CHECK(costs[1].op == "tanh");
  CHECK(costs[1].calls == 2);
  CHECK(costs[1].flops.total() == 0);
  CHECK(costs[0].bytes + costs[1].bytes + costs[2].bytes == static_cast<double>(plan.bytes()));

  bool ran = false;
  plan.rewind();
  record(
      "op", {2, 1000}, {plan.variable(x)}, [&](Var) { ran = true; }, [](Var) {});
  CHECK_FALSE(ran);
  CHECK(plan.bytes() >= 2000 * sizeof(Real));

  plan.rewind();
  plan.bind_plan(shapes, false);
  CHECK_FALSE(linear(plan.constant(x), plan.parameter({0})).needs_grad());
  CHECK(plan.costs()[0].flops.backward == 0);
}
