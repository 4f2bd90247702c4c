#include "engine/kernels/optimizer.h"

#include "catch.h"
#include "engine/kernels/matrix.h"

using namespace thimble;

namespace {

// A row as a span; the element after it shows whether something was written too far.
std::span<Real> row(Matrix& m) { return {m.view().data, static_cast<std::size_t>(m.cols())}; }
std::span<const Real> row(const Matrix& m) { return {m.view().data, static_cast<std::size_t>(m.cols())}; }

}  // namespace

TEST_CASE("Adam's step is its formula, at every length", "[kernels]") {
  const kernels::AdamFactors variants[] = {{.lr = Real(0.1),
                                            .beta1 = Real(0.9),
                                            .beta2 = Real(0.99),
                                            .root_correction = Real(3),
                                            .epsilon = Real(1e-8),
                                            .shrink = 1,
                                            .l2 = 0,
                                            .gradient_scale = 1},
                                           {.lr = Real(0.1),
                                            .beta1 = Real(0.5),
                                            .beta2 = Real(0.7),
                                            .root_correction = Real(1.2),
                                            .epsilon = Real(0.1),
                                            .shrink = Real(0.95),
                                            .l2 = 0,
                                            .gradient_scale = Real(0.25)},
                                           {.lr = Real(0.1),
                                            .beta1 = Real(0.9),
                                            .beta2 = Real(0.99),
                                            .root_correction = Real(1),
                                            .epsilon = Real(1e-3),
                                            .shrink = 1,
                                            .l2 = Real(0.3),
                                            .gradient_scale = Real(2)}};
  for (const std::int64_t n : kSizes) {
    for (const auto& f : variants) {
      CAPTURE(n, f.beta1, f.l2, f.shrink);
      const Matrix p0(1, n, 1), m0(1, n, 2), gradient(1, n, 3);
      Matrix p = p0, m = m0, v0(1, n, 4);
      for (std::int64_t c = 0; c < n; ++c) v0(0, c) = v0(0, c) * v0(0, c);
      Matrix v = v0;
      kernels::adam_step(row(p), row(m), row(v), row(gradient), f);
      const auto g = [&](std::int64_t c) {
        return Wide(f.gradient_scale) * gradient(0, c) + Wide(f.l2) * p0(0, c);
      };
      const auto first = [&](std::int64_t c) {
        return f.beta1 * Wide(m0(0, c)) + (1 - Wide(f.beta1)) * g(c);
      };
      const auto second = [&](std::int64_t c) {
        return f.beta2 * Wide(v0(0, c)) + (1 - Wide(f.beta2)) * g(c) * g(c);
      };
      CHECK(worst_error(m, [&](auto, auto c) { return first(c); }) < kRounding / 10);
      CHECK(worst_error(v, [&](auto, auto c) { return second(c); }) < kRounding / 10);
      CHECK(worst_error(p, [&](auto, auto c) {
              return f.shrink * Wide(p0(0, c)) -
                     f.lr * first(c) / (std::sqrt(second(c)) * f.root_correction + f.epsilon);
            }) < kRounding / 2);
      CHECK((p.intact() && m.intact() && v.intact()));
    }
  }
}

TEST_CASE("Adam stands still where the gradient and its moments are zero", "[kernels]") {
  Matrix p(1, 17, 1), m(1, 17), v(1, 17);
  const Matrix before = p, zero(1, 17);
  kernels::adam_step(row(p), row(m), row(v), row(zero),
                     {.lr = 1,
                      .beta1 = Real(0.9),
                      .beta2 = Real(0.999),
                      .root_correction = 30,
                      .epsilon = Real(1e-8),
                      .shrink = 1,
                      .l2 = 0,
                      .gradient_scale = 1});
  CHECK(worst_error(p, [&](auto, auto c) { return before(0, c); }) == 0);
}

TEST_CASE("SGD's step is its formula, at every length", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const Real momentum : {Real(0), Real(0.9)}) {
      CAPTURE(n, momentum);
      const kernels::SgdFactors f{
          .lr = Real(0.1), .momentum = momentum, .l2 = Real(0.2), .gradient_scale = Real(0.5)};
      const Matrix p0(1, n, 1), v0(1, n, 2), gradient(1, n, 3);
      Matrix p = p0, v = v0;
      kernels::sgd_step(row(p), row(v), row(gradient), f);
      const auto velocity = [&](std::int64_t c) {
        return momentum * Wide(v0(0, c)) + Wide(f.gradient_scale) * gradient(0, c) + Wide(f.l2) * p0(0, c);
      };
      CHECK(worst_error(v, [&](auto, auto c) { return velocity(c); }) < kRounding / 10);
      CHECK(worst_error(p, [&](auto, auto c) { return p0(0, c) - Wide(f.lr) * velocity(c); }) <
            kRounding / 10);
      CHECK((p.intact() && v.intact()));
    }
  }
}

TEST_CASE("a sum of squares is accurate at any length", "[kernels]") {
  for (const std::int64_t n : {0, 1, 5, 16, 100, 1023, 1024, 1025, 5000, 300000}) {
    CAPTURE(n);
    const Matrix x(1, n, 1);
    Wide sum = 0;
    for (std::int64_t c = 0; c < n; ++c) sum += Wide(x(0, c)) * x(0, c);
    CHECK_THAT(kernels::sum_of_squares(row(x)),
               WithinAbs(static_cast<double>(sum), 1e-2 * kRounding * static_cast<double>(n)));
  }
}

TEST_CASE("a sum of squares is not finite when an element is not", "[kernels]") {
  for (const Real bad : {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity()}) {
    for (const std::int64_t at : {0, 15, 1500, 2047}) {
      Matrix x(1, 2048, 1);
      x(0, at) = bad;
      CHECK_FALSE(std::isfinite(kernels::sum_of_squares(row(x))));
    }
  }
}
