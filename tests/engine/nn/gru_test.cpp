// Properties of a GRU over padded sequences that hold for all weights.
#include "thimble/engine/gru.h"

#include <cmath>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/engine/modules.h"

using namespace thimble;

namespace {

constexpr std::int64_t kTime = 4, kIn = 3, kHidden = 5;

Tensor random_tensor(const Shape& shape, std::uint64_t seed) {
  const Random random(seed, Stream::gradcheck);
  Tensor x(shape);
  std::uint64_t i = 0;
  for (Real& v : x.values()) v = static_cast<Real>(random.normal(i++));
  return x;
}

struct Layer {
  ParameterStore store;
  Gru gru;

  explicit Layer(bool bidirectional) : gru(store, "gru", kIn, kHidden, bidirectional) { gru.init(store, 7); }
};

// Returns the first `length` steps of sequence b of x, alone.
Tensor alone(const Tensor& x, std::int64_t b, std::int64_t length) {
  const auto first = x.values().begin() + b * kTime * kIn;
  return {{1, length, kIn}, std::span(first, first + length * kIn)};
}

}  // namespace

TEST_CASE("a padded sequence gives what it gives alone, in both directions", "[nn]") {
  const bool bidirectional = GENERATE(false, true);
  const std::vector<std::int32_t> lengths{2, 4, 1};
  Layer layer(bidirectional);
  const Tensor x = random_tensor({3, kTime, kIn}, 1);
  Tape tape;
  tape.bind(layer.store, {});
  const GruStates padded = layer.gru(tape.constant(x), lengths);
  const std::int64_t width = kHidden * (bidirectional ? 2 : 1);
  REQUIRE(padded.all.shape() == Shape{3, kTime, width});
  REQUIRE(padded.last.shape() == Shape{3, width});
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t length = lengths[static_cast<std::size_t>(b)];
    const GruStates single = layer.gru(tape.constant(alone(x, b, length)), {});
    for (std::int64_t c = 0; c < width; ++c) {
      CAPTURE(b, c);
      CHECK_THAT(padded.last.value().row(b)[c], WithinAbs(single.last.value().row(0)[c], 1e-6));
      for (std::int64_t t = 0; t < length; ++t)
        CHECK_THAT(padded.all.value().row(b * kTime + t)[c], WithinAbs(single.all.value().row(t)[c], 1e-6));
      // After the end the forward state stays, and the backward one has not begun.
      for (std::int64_t t = length; t < kTime; ++t)
        CHECK(padded.all.value().row(b * kTime + t)[c] == (c < kHidden ? padded.last.value().row(b)[c] : 0));
    }
  }
}

TEST_CASE("a sequence without steps keeps the state 0, and its input gets no gradient", "[nn]") {
  const std::vector<std::int32_t> lengths{0, 2};
  Layer layer(true);
  AlignedVector<Real> gradients(layer.store.size());
  Tape tape;
  tape.bind(layer.store, gradients);
  const Var x = tape.variable(random_tensor({2, kTime, kIn}, 1));
  const GruStates states = layer.gru(x, lengths);
  for (std::int64_t c = 0; c < 2 * kHidden; ++c) CHECK(states.last.value().row(0)[c] == 0);
  const Tensor seed = random_tensor(states.all.shape(), 2);
  tape.backward(states.all, seed.matrix());
  for (std::int64_t row = 0; row < 2 * kTime; ++row) {
    const bool inside = row >= kTime && row < kTime + 2;
    for (std::int64_t c = 0; c < kIn; ++c) CHECK((x.grad().row(row)[c] != 0) == inside);
  }
}

TEST_CASE("a GRU refuses what it cannot read", "[nn]") {
  Layer layer(false);
  Tape tape;
  tape.bind(layer.store, {});
  const auto says = [&](const Shape& x, const std::vector<std::int32_t>& lengths) -> std::string {
    try {
      layer.gru(tape.constant(Tensor(x)), lengths);
    } catch (const ShapeError& e) {
      return e.what();
    }
    return "accepted";
  };
  CHECK_THAT(says({2, kIn}, {}), ContainsSubstring("gru: x (2, 3) must be (batch, time, channels)"));
  CHECK_THAT(says({2, 0, kIn}, {}), ContainsSubstring("at least one step"));
  CHECK_THAT(says({2, 4, kIn}, {1, 5}), ContainsSubstring("gru: every length must be 0 .. 4"));
  CHECK_THAT(says({2, 4, kIn}, {1, -1}), ContainsSubstring("gru: every length must be 0 .. 4"));
  CHECK_THAT(says({2, 4, kIn}, {1}), ContainsSubstring("1 lengths for a batch of 2"));
}

TEST_CASE("parameters have PyTorch's names, order and initial range", "[nn]") {
  Layer layer(true);
  Convolution convolution(layer.store, "conv", 4, 3, true);
  convolution.init(layer.store, 7);
  std::string names;
  for (const auto& entry : layer.store.entries()) names += fmt::format("{} {}\n", entry.name, entry.shape);
  CHECK(names ==
        "gru.weight_ih_l0 (15, 3)\ngru.weight_hh_l0 (15, 5)\ngru.bias_ih_l0 (15)\ngru.bias_hh_l0 (15)\n"
        "gru.weight_ih_l0_reverse (15, 3)\ngru.weight_hh_l0_reverse (15, 5)\ngru.bias_ih_l0_reverse (15)\n"
        "gru.bias_hh_l0_reverse (15)\nconv.weight (4, 4, 3)\nconv.bias (4)\n");
  for (int i = 0; i < 10; ++i) {
    const double bound = 1 / std::sqrt(i < 8 ? 5.0 : 12.0);
    double largest = 0;
    for (const Real v : layer.store.values({i}))
      largest = std::max(largest, std::abs(static_cast<double>(v)));
    CAPTURE(i, bound);
    CHECK(largest <= bound + 1e-7);
    CHECK(largest > (i == 9 ? 0.3 : 0.8) * bound);  // four draws may all be small
  }
}
