// Kernels that pick and combine whole rows: embedding, positions, pooling.
#include <numeric>

#include "catch.h"
#include "engine/kernels/embedding.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/pool.h"

using namespace thimble;

namespace {

using Numbers = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("an embedding copies rows, and its backward adds to them", "[kernels]") {
  const Numbers tokens{4, 0, 4, 4, 2, 0};
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 3}) {
      CAPTURE(n, gap);
      const Matrix table(5, n, 1, gap), dy(6, n, 2, gap), before(5, n, 3, gap);
      Matrix y(6, n, 4, gap), dtable = before;
      kernels::embedding_forward(y, table, tokens);
      CHECK(worst_error(y, [&](auto r, auto c) { return table(tokens[static_cast<std::size_t>(r)], c); }) ==
            0);
      kernels::embedding_backward(dtable, dy, tokens);
      CHECK(worst_error(dtable, [&](auto token, auto c) {
              Wide sum = before(token, c);
              for (std::int64_t r = 0; r < 6; ++r)
                sum += tokens[static_cast<std::size_t>(r)] == token ? dy(r, c) : 0;
              return sum;
            }) < kRounding / 10);
      CHECK((y.intact() && dtable.intact()));
    }
  }
}

TEST_CASE("positions are added in every sequence, and gathered over all of them", "[kernels]") {
  constexpr std::int64_t kBatch = 3, kTime = 4;
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 3}) {
      for (const std::int64_t rows : {kTime, kTime + 2}) {
        CAPTURE(n, gap, rows);
        const Matrix x(kBatch * kTime, n, 1, gap), positions(rows, n, 2, gap), before(rows, n, 3, gap);
        Matrix y(kBatch * kTime, n, 4, gap), dpositions = before;
        kernels::add_positions_forward(y, x, positions, kTime);
        CHECK(worst_error(y, [&](auto r, auto c) { return x(r, c) + positions(r % kTime, c); }) == 0);
        kernels::add_positions_backward(dpositions, x, kTime);
        CHECK(worst_error(dpositions, [&](auto t, auto c) {
                Wide sum = before(t, c);
                for (std::int64_t b = 0; b < kBatch && t < kTime; ++b) sum += x(b * kTime + t, c);
                return sum;
              }) < kRounding / 10);
        CHECK((y.intact() && dpositions.intact()));
      }
    }
  }
}

TEST_CASE("sinusoidal positions are Vaswani's formula", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    CAPTURE(n);
    Matrix p(50, n, 1, 3);
    kernels::sinusoidal_positions(p);
    CHECK(worst_error(p, [&](auto t, auto c) {
            const Wide angle = t / std::pow(Wide(10000), Wide(2 * (c / 2)) / n);
            return c % 2 == 0 ? std::sin(angle) : std::cos(angle);
          }) < kRounding / 10);
    CHECK(p.intact());
  }
}

TEST_CASE("pool weights: mean, first and last of each sequence", "[kernels]") {
  using kernels::Pool;
  Matrix weights(3, 5, 1, 2);
  const Numbers lengths{5, 1, 3};
  const auto length = [&](std::int64_t b) { return lengths[static_cast<std::size_t>(b)]; };
  kernels::pool_weights(weights, Pool::mean, lengths);
  CHECK(worst_error(weights, [&](auto b, auto t) {
          return t < length(b) ? Real(1) / static_cast<Real>(length(b)) : 0;
        }) == 0);
  kernels::pool_weights(weights, Pool::first, lengths);
  CHECK(worst_error(weights, [&](auto, auto t) { return t == 0; }) == 0);
  kernels::pool_weights(weights, Pool::last, lengths);
  CHECK(worst_error(weights, [&](auto b, auto t) { return t == length(b) - 1; }) == 0);
  kernels::pool_weights(weights, Pool::mean, {});
  CHECK(worst_error(weights, [&](auto, auto) { return Real(0.2); }) == 0);
  kernels::pool_weights(weights, Pool::last, {});
  CHECK(worst_error(weights, [&](auto, auto t) { return t == 4; }) == 0);
  CHECK(weights.intact());
}

TEST_CASE("pooling is a weighted sum over time, and its backward spreads the gradient", "[kernels]") {
  constexpr std::int64_t kBatch = 3, kTime = 5;
  const Matrix weights(kBatch, kTime, 1);
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 3}) {
      CAPTURE(n, gap);
      const Matrix x(kBatch * kTime, n, 2, gap), dy(kBatch, n, 3, gap), before(kBatch * kTime, n, 4, gap);
      Matrix y(kBatch, n, 5, gap), dx = before;
      kernels::pool_forward(y, x, weights);
      CHECK(worst_error(y, [&](auto b, auto c) {
              Wide sum = 0;
              for (std::int64_t t = 0; t < kTime; ++t) sum += Wide(weights(b, t)) * x(b * kTime + t, c);
              return sum;
            }) < kRounding / 10);
      kernels::pool_backward(dx, dy, weights);
      CHECK(worst_error(dx, [&](auto r, auto c) {
              return before(r, c) + Wide(weights(r / kTime, r % kTime)) * dy(r / kTime, c);
            }) < kRounding / 10);
      CHECK((y.intact() && dx.intact()));
    }
  }
}
