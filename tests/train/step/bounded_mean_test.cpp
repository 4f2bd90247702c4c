// Intervals and p-values of bounded effects, against exact ones of other authors and formulas.
#include "thimble/train/bounded_mean.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "catch.h"
#include "thimble/engine/error.h"

using namespace thimble;

namespace {

// Sequences of one answer, of which some gain it and some lose it.
BoundedMean answers(std::size_t all, std::size_t gained, std::size_t lost) {
  std::vector<double> changes(all), labels(all, 1);
  std::fill_n(changes.begin(), gained, 1);
  std::fill_n(changes.begin() + static_cast<std::ptrdiff_t>(gained), lost, -1);
  return {changes, labels, 1, {-1, 1}};
}

double choose(int n, int k) {
  double ways = 1;
  for (int i = 0; i < k; ++i) ways = ways * (n - i) / (i + 1);
  return ways;
}

// Returns P(X >= k) for X binomial.
double at_least(int n, int k, double p) {
  double sum = 0;
  for (int i = k; i <= n; ++i) sum += choose(n, i) * std::pow(p, i) * std::pow(1 - p, n - i);
  return sum;
}

// Returns P(sum_i w_i a_i <= 0) for different a and exponential weights w, by partial fractions.
double hypoexponential(const std::vector<double>& a) {
  double positive = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] <= 0) continue;
    double product = 1;
    for (std::size_t j = 0; j < a.size(); ++j)
      if (j != i) product *= a[i] / (a[i] - a[j]);
    positive += product;
  }
  return 1 - positive;
}

}  // namespace

TEST_CASE("p of one answer a sequence is McNemar's, with half of the equal outcomes", "[train]") {
  for (const auto& [gained, lost] : {std::pair{3, 0}, {0, 4}, {9, 1}, {10, 4}, {7, 7}, {25, 11}}) {
    const int all = gained + lost, few = std::min(gained, lost);
    double expected = 0;
    for (int i = 0; i <= few; ++i) expected += (i == few ? 1 : 2) * choose(all, i) * std::pow(0.5, all);
    CAPTURE(gained, lost);
    CHECK_THAT(answers(100, static_cast<std::size_t>(gained), static_cast<std::size_t>(lost)).p(),
               WithinAbs(std::min(1.0, expected), 1e-8));
  }
}

TEST_CASE("the interval of one answer a sequence has Clopper and Pearson's end on the side of the change",
          "[train]") {
  for (const int n : {1, 5, 25, 40}) {
    for (const int gained : {0, 1, 3, n}) {
      if (gained > n) continue;
      CAPTURE(n, gained);
      const Interval interval =
          answers(static_cast<std::size_t>(n), static_cast<std::size_t>(gained), 0).interval();
      // Their ends are those where as many gains, or as few, have a probability of 0.025.
      if (gained == 0) {
        CHECK_THAT(interval.high, WithinAbs(1 - std::pow(0.025, 1.0 / n), 1e-8));
        CHECK_THAT(interval.low, WithinAbs(-interval.high, 1e-8));
        continue;
      }
      if (gained < n) CHECK_THAT(at_least(n, gained + 1, interval.high), WithinAbs(0.975, 1e-6));
      if (gained == n) CHECK(interval.high == 1);
      CHECK(at_least(n, gained, std::max(0.0, interval.low)) <= 0.025 + 1e-9);  // theirs is higher
    }
  }
}

TEST_CASE("distributions of weighted sums are those of partial fractions", "[train]") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> change(-1, 1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = 1 + random() % 9;
    const double most = 3, t = 0.1 * change(random);
    std::vector<double> changes, labels;
    for (std::size_t i = 0; i < count; ++i) {
      labels.push_back(1 + static_cast<double>(random() % 3));
      changes.push_back(labels.back() * change(random));
    }
    const auto below = [&](double bound) {
      std::vector<double> a{most * (bound - t)};
      for (std::size_t i = 0; i < count; ++i) a.push_back(changes[i] - t * labels[i]);
      return hypoexponential(a);
    };
    const double m = (below(-1) + below(1)) / 2;
    const BoundedMean mean(changes, labels, most, {-1, 1});
    CHECK_THAT(mean.p(t), WithinAbs(2 * std::min(m, 1 - m), 1e-6));
    CHECK(mean.is_above(t) == (below(-1) < 0.025));
    CHECK(mean.is_below(t) == (below(1) > 0.975));
    const Interval interval = mean.interval();
    CHECK((mean.is_above(interval.low - 1e-6) && !mean.is_above(interval.low + 1e-6)));
    CHECK((mean.is_below(interval.high + 1e-6) && !mean.is_below(interval.high - 1e-6)));
    CHECK(interval.contains(mean.mean()));
  }
}

TEST_CASE("bounded means without answers, of equal changes, and of sizes that differ", "[train]") {
  const BoundedMean none({}, {}, 1, {-1, 1});
  CHECK_FALSE(none.is_known());
  CHECK((std::isnan(none.mean()) && std::isnan(none.interval().low) && none.p() == 1));
  CHECK((!none.is_above(-1) && !none.is_below(1)));
  const BoundedMean lost(std::vector{-2.0, -4.0}, std::vector{2.0, 4.0}, 4, {-1, 1});
  CHECK(lost.mean() == -1);
  CHECK(lost.interval().low == -1);
  CHECK((lost.is_below(1.5) && lost.is_above(-1.5) && !lost.is_above(1) && !lost.is_below(-1)));
  const BoundedMean beyond(std::vector{1.0 + 1e-9}, std::vector{1.0}, 1, {-1, 1});
  CHECK(beyond.mean() == 1);
  CHECK_THROWS_AS(BoundedMean(std::vector{1.0}, std::vector{1.0, 2.0}, 2, {-1, 1}), ShapeError);
}

TEST_CASE("the interval covers the true effect, and no test rejects too often, for small and rare effects",
          "[train][slow]") {
  struct Population {
    std::size_t sequences;
    double labels, mean;
    std::function<double(std::mt19937&)> change;
  };
  std::uniform_real_distribution<double> uniform;
  const auto rare = [&](double share, double size) {
    return [=](std::mt19937& random) mutable { return uniform(random) < share ? size : 0; };
  };
  const std::vector<Population> populations = {
      {100, 1, 0.01, rare(0.01, 1)},
      {300, 1, 0.01, rare(0.01, 1)},
      {1000, 1, 0.002, rare(0.002, 1)},
      {100, 16, 0.01, rare(0.01, 16)},  // whole sequences at once
      {25, 1, 0,
       [&](std::mt19937& random) { return uniform(random) < 0.5   ? 0.0
                                          : uniform(random) < 0.5 ? 1
                                                                  : -1; }},
      // Rare changes that cancel: +1 on 9 % of sequences, -3 on 3 %.
      {300, 3, 0, [&](std::mt19937& random) {
         const double x = uniform(random);
         return x < 0.09 ? 1.0 : x < 0.12 ? -3 : 0;
       }}};
  std::mt19937 random(11);
  for (const Population& of : populations) {
    constexpr int kRepetitions = 2000;
    int covered = 0, rejected = 0;
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
      std::vector<double> changes, labels(of.sequences, of.labels);
      for (std::size_t i = 0; i < of.sequences; ++i) changes.push_back(of.change(random));
      const BoundedMean mean(changes, labels, of.labels, {-1, 1});
      covered += mean.interval().contains(of.mean);
      rejected += mean.p(of.mean) <= 0.05;
    }
    INFO(of.sequences << " sequences, mean " << of.mean);
    // Three standard errors of a share of 0.05 of the repetitions.
    CHECK(covered >= kRepetitions * (0.95 - 0.0146));
    CHECK(rejected <= kRepetitions * (0.05 + 0.0146));
  }
}
