// Approximate confidence intervals, and the correction of p-values for their number.
#include "thimble/inspect/interval.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/engine/random.h"

using namespace thimble;

namespace {

// A population of sequences with a known mean change per label.
struct Population {
  std::string name;
  std::size_t sequences;
  double mean;
  // Sets the change and the number of labels of a sequence from random numbers; next() is uniform in [0, 1).
  std::function<void(const std::function<double()>& next, double& change, double& labels)> draw;
};

double normal(const std::function<double()>& next) {
  const double radius = std::sqrt(-2 * std::log(1 - next()));
  return radius * std::cos(2 * 3.14159265358979323846 * next());
}

double binomial(const std::function<double()>& next, int n, double p) {
  int count = 0;
  for (int i = 0; i < n; ++i) count += next() < p;
  return count;
}

std::vector<Population> populations() {
  return {{"normal, few sequences", 20, 0.5,
           [](const auto& next, double& change, double& labels) {
             labels = 10;
             change = 10 * (0.5 + normal(next));
           }},
          {"skewed, few sequences", 20, 1,
           [](const auto& next, double& change, double& labels) {
             labels = 1;
             change = -std::log(1 - next());
           }},
          {"skewed", 200, 1,
           [](const auto& next, double& change, double& labels) {
             labels = 1;
             change = -std::log(1 - next());
           }},
          {"very skewed", 1000, std::exp(0.5),
           [](const auto& next, double& change, double& labels) {
             labels = 1;
             change = std::exp(normal(next));
           }},
          {"rare: one answer in 50 is lost", 1000, 0.02,
           [](const auto& next, double& change, double& labels) {
             labels = 1;
             change = next() < 0.02;
           }},
          {"rare and clustered: half of the labels of one sequence in 20", 1000, 0.025,
           [](const auto& next, double& change, double& labels) {
             labels = 10;
             change = next() < 0.05 ? binomial(next, 10, 0.5) : 0;
           }},
          {"clustered labels, more of them where more is lost", 60,
           143.5 / 40 / 10.5,  // E n² / 40 over E n, for n uniform in 1 .. 20
           [](const auto& next, double& change, double& labels) {
             labels = 1 + std::floor(20 * next());
             change = binomial(next, static_cast<int>(labels), labels / 40);
           }}};
}

}  // namespace

TEST_CASE("an interval covers the true effect in 95 % of all samples", "[inspect][slow]") {
  constexpr int kRepetitions = 6000;
  for (const Population& population : populations()) {
    INFO(population.name);
    int covered = 0;
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
      const Random random(1, Stream::gradcheck);
      std::uint32_t drawn = 0;
      const auto next = [&] { return random.uniform(static_cast<std::uint64_t>(repetition), drawn++); };
      std::vector<double> changes(population.sequences), labels(population.sequences);
      for (std::size_t i = 0; i < population.sequences; ++i) population.draw(next, changes[i], labels[i]);
      const MeanChange found = mean_change(changes, labels);
      covered += found.interval.contains(population.mean);
    }
    const double share = static_cast<double>(covered) / kRepetitions;
    CHECK(share >= 0.94);
    CHECK(share <= 0.96);
  }
}

TEST_CASE("the interval of a symmetric sample is Student's", "[inspect]") {
  // scipy.stats.t.interval(0.95, 9, 0, 1 / sqrt(10) * sd) for -4.5 .. 4.5: sd = 3.02765, t = 2.262157
  std::vector<double> changes, labels(10, 2.0);
  for (int i = 0; i < 10; ++i) changes.push_back(2 * (i - 4.5));
  const MeanChange found = mean_change(changes, labels);
  CHECK_THAT(found.mean, WithinAbs(0, 1e-12));
  CHECK_THAT(found.interval.high, WithinRel(2.165851, 1e-3));
  CHECK_THAT(found.interval.low, WithinRel(-2.165851, 1e-3));
}

TEST_CASE("the interval of a skewed sample reaches further to the longer side", "[inspect]") {
  std::vector<double> changes(100), labels(100, 1.0);
  for (std::size_t i = 0; i < 5; ++i) changes[i] = 1;
  const MeanChange found = mean_change(changes, labels);
  CHECK_THAT(found.mean, WithinRel(0.05, 1e-12));
  CHECK(found.interval.high - found.mean > 1.5 * (found.mean - found.interval.low));
  CHECK(found.interval.low > 0);
  for (double& change : changes) change = -change;
  const MeanChange negative = mean_change(changes, labels);
  CHECK_THAT(negative.interval.low, WithinRel(-found.interval.high, 1e-12));
}

TEST_CASE("samples without spread, of one or two sequences, and without labels", "[inspect]") {
  const MeanChange none = mean_change(std::vector{0.0, 0.0, 0.0}, std::vector{1.0, 2.0, 3.0});
  CHECK(none.interval.low == 0);
  CHECK(none.interval.high == 0);
  const MeanChange equal = mean_change(std::vector{2.0, 4.0}, std::vector{1.0, 2.0});
  CHECK(equal.mean == 2);
  CHECK(to_json(equal.interval).dump() == "[2.0,2.0]");
  const MeanChange one = mean_change(std::vector{2.0}, std::vector{1.0});
  CHECK(std::isnan(one.interval.low));
  CHECK(to_json(one.interval).dump() == "[null,null]");
  const MeanChange two = mean_change(std::vector{1.0, 3.0}, std::vector{1.0, 1.0});
  CHECK(two.interval.low < 1);
  CHECK_THAT(two.interval.high - 2, WithinRel(2 - two.interval.low, 1e-12));
  CHECK(mean_change(std::vector{0.0, 0.0}, std::vector{0.0, 0.0}).mean == 0);
  CHECK_THROWS_AS(mean_change(std::vector{1.0, 2.0}, std::vector{1.0}), ShapeError);
  CHECK_THROWS_AS(mean_change({}, {}), ShapeError);
}

TEST_CASE("Holm's correction multiplies by the number of remaining tests", "[inspect]") {
  const std::vector<double> p = holm(std::vector{0.01, 0.04, 0.03, 0.005});
  CHECK_THAT(p[3], WithinRel(0.02, 1e-12));
  CHECK_THAT(p[0], WithinRel(0.03, 1e-12));
  CHECK_THAT(p[2], WithinRel(0.06, 1e-12));
  CHECK_THAT(p[1], WithinRel(0.06, 1e-12));  // at least that of the one before it
  CHECK(holm(std::vector{0.9, 0.8})[0] == 1);
  CHECK(holm({}).empty());
}
