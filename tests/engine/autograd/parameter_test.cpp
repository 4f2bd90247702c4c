#include "thimble/engine/parameter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "catch.h"
#include "engine/kernels/products/linear.h"
#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

using namespace thimble;

namespace {

std::vector<Real> copy(std::span<const Real> values) { return {values.begin(), values.end()}; }

void flip_bit(Real& x, int bit) {
  unsigned char bytes[sizeof(Real)];
  std::memcpy(bytes, &x, sizeof(Real));
  bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ 1 << bit % 8);
  std::memcpy(&x, bytes, sizeof(Real));
}

}  // namespace

TEST_CASE("parameters lie one after another, each on a cache line", "[autograd]") {
  ParameterStore store;
  const Parameter a = store.add("a", {3, 5}), b = store.add("b", {}), c = store.add("c", {40});
  CHECK(store.count() == 15 + 1 + 40);
  CHECK(store.entries().size() == 3);
  CHECK(store.entry(b).name == "b");
  CHECK(store.entry(a).shape == Shape{3, 5});
  std::size_t end = 0;
  for (const auto& entry : store.entries()) {
    CHECK(entry.offset >= end);
    CHECK(entry.offset * sizeof(Real) % kAlignment == 0);
    end = entry.offset + entry.size();
  }
  CHECK(store.size() >= end);
  CHECK(store.values(a).size() == 15);
  CHECK(store.values(c).data() == store.values().data() + store.entry(c).offset);
  CHECK(std::ranges::all_of(store.values(), [](Real x) { return x == 0; }));
  std::vector<int> same_layout(store.size());
  CHECK(store.slice(std::span<int>(same_layout), c).data() == same_layout.data() + store.entry(c).offset);
}

TEST_CASE("two parameters of one name are refused", "[autograd]") {
  ParameterStore store;
  store.add("weight", {2});
  CHECK_THROWS_AS(store.add("weight", {3}), Error);
  CHECK_THROWS_WITH(store.add("weight", {3}), "parameter store: there is a parameter weight already");
  CHECK(store.entries().size() == 1);
}

TEST_CASE("a parameter survives the ones added after it", "[autograd]") {
  ParameterStore store;
  const Parameter a = store.add("a", {2});
  store.values(a)[1] = 7;
  for (int i = 0; i < 50; ++i) store.add(std::to_string(i), {100});
  CHECK(store.values(a)[1] == 7);
}

TEST_CASE("the hash changes with every bit of every parameter and with nothing else", "[autograd]") {
  ParameterStore store;
  const Parameter a = store.add("a", {3}), b = store.add("b", {2, 2});
  init_uniform(store, a, 1, 1);
  const std::string hash = store.hash();
  CHECK(hash.size() == 16);
  CHECK(hash.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(store.hash() == hash);
  for (const Parameter p : {a, b}) {
    for (Real& x : store.values(p)) {
      for (int bit = 0; bit < static_cast<int>(8 * sizeof(Real)); ++bit) {
        flip_bit(x, bit);
        CHECK(store.hash() != hash);
        flip_bit(x, bit);
      }
    }
  }
  store.values()[store.entry(a).offset + 3] = 5;  // padding
  CHECK(store.hash() == hash);
}

TEST_CASE("the hash is XXH3 of the bytes", "[autograd]") {
  CHECK(ParameterStore().hash() == "2d06800538d394c2");  // XXH3-64 of no bytes
}

TEST_CASE("an initial value depends on seed, parameter and element alone", "[autograd]") {
  ParameterStore small, large;
  const Parameter s0 = small.add("x", {4}), s1 = small.add("y", {6});
  const Parameter l0 = large.add("other name", {50}), l1 = large.add("y", {3, 2});
  for (const auto init : {init_uniform, init_normal}) {
    init(small, s1, 11, 0.5);
    init(large, l0, 99, 2);
    init(large, l1, 11, 0.5);
    CHECK(copy(small.values(s1)) == copy(large.values(l1)));  // whatever else there is, and in whatever order
    init(small, s0, 99, 2);
    CHECK(copy(small.values(s0)) == copy(large.values(l0).first(4)));
    init(large, l0, 11, 0.5);
    CHECK(copy(small.values(s1).first(4)) != copy(large.values(l0).first(4)));  // another parameter
    const auto before = copy(small.values(s1));
    init(small, s1, 12, 0.5);
    CHECK(copy(small.values(s1)) != before);  // another seed
    init(small, s1, 11, 0.5);
    CHECK(copy(small.values(s1)) == before);
  }
}

TEST_CASE("initial values have the distribution they should", "[autograd]") {
  constexpr std::int64_t kCount = 100000;
  const double root = std::sqrt(static_cast<double>(kCount));
  ParameterStore store;
  const Parameter p = store.add("p", {kCount});
  const auto mean_of = [&](auto&& f) {
    double sum = 0;
    for (const Real x : store.values(p)) sum += f(static_cast<double>(x));
    return sum / static_cast<double>(kCount);
  };
  const auto identity = [](double x) { return x; };
  const auto square = [](double x) { return x * x; };

  init_uniform(store, p, 3, 0.25);
  CHECK(std::ranges::all_of(store.values(p), [](Real x) { return x >= Real(-0.25) && x <= Real(0.25); }));
  CHECK_THAT(mean_of(identity), WithinAbs(0, 4 * 0.25 / std::sqrt(3.0) / root));
  CHECK_THAT(mean_of(square), WithinRel(0.0625 / 3, 0.02));

  init_normal(store, p, 3, 0.5);
  CHECK_THAT(mean_of(identity), WithinAbs(0, 4 * 0.5 / root));
  CHECK_THAT(mean_of(square), WithinRel(0.25, 0.02));
  CHECK_THAT(mean_of([](double x) { return std::abs(x) < 0.5 ? 1.0 : 0.0; }), WithinAbs(0.6827, 0.006));

  init_constant(store, p, Real(1.5));
  CHECK(std::ranges::all_of(store.values(p), [](Real x) { return x == Real(1.5); }));
}

TEST_CASE("packed weights are those of the last refresh, for matrices alone", "[autograd]") {
  ParameterStore store;
  const Parameter first = store.add("first", {3, 4}), bias = store.add("bias", {5}),
                  weight = store.add("weight", {5, 37});
  init_normal(store, first, 1, 1);
  init_normal(store, weight, 1, 1);
  PackedWeights packed(store);
  CHECK(packed.count() == 2);
  CHECK(packed.of(bias).forward.data == nullptr);
  Tensor x({2, 37}), dy({2, 5});
  x.data()[3] = dy.data()[0] = 2;
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t i = 0; i < packed.count(); ++i) packed.refresh(i);
    const auto& [forward, backward] = packed.of(weight);
    CHECK((forward.rows == 37 && forward.cols == 5 && backward.rows == 5 && backward.cols == 37));
    Tensor y({2, 5}), dx({2, 37});
    kernels::gemm_packed(y.matrix(), {}, std::as_const(x).matrix(), forward);
    kernels::gemm_packed(dx.matrix(), {}, std::as_const(dy).matrix(), backward);
    bool equal = true;
    for (std::size_t o = 0; o < 5; ++o) equal &= y.data()[o] == 2 * store.values(weight)[o * 37 + 3];
    for (std::size_t i = 0; i < 37; ++i) equal &= dx.data()[i] == 2 * store.values(weight)[i];
    CHECK(equal);
    store.values(weight)[3] = 100;
  }
}

TEST_CASE("a tape with packed weights gives the bits of one without", "[autograd]") {
  ParameterStore store;
  const Parameter weight = store.add("weight", {100, 37}), bias = store.add("bias", {100});
  init_normal(store, weight, 1, 1);
  init_normal(store, bias, 1, 1);
  PackedWeights packed(store);
  for (std::int64_t i = 0; i < packed.count(); ++i) packed.refresh(i);
  Tensor x({50, 37});
  for (std::int64_t i = 0; i < x.shape().elements(); ++i) x.data()[i] = static_cast<Real>(i % 11) / 7;
  const auto result = [&](const PackedWeights* ready) {
    Tape tape;
    tape.bind(store, {}, ready);
    const MatrixView y = linear(tape.constant(x), tape.parameter(weight), tape.parameter(bias)).value();
    return std::vector<Real>(y.data, y.data + y.elements());
  };
  CHECK(result(&packed) == result(nullptr));
  // The tape uses the packed weights that it was given.
  store.values(weight)[0] += 1;
  CHECK(result(&packed) != result(nullptr));
}
