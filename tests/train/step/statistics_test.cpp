#include "thimble/train/statistics.h"

#include <cmath>
#include <limits>

#include "catch.h"

using namespace thimble;

TEST_CASE("the spread of numbers", "[train]") {
  const Spread three = spread({4, 1, 2});
  CHECK(three.count == 3);
  CHECK_THAT(three.mean, WithinRel(7.0 / 3, 1e-15));
  CHECK_THAT(three.sd.value(), WithinRel(std::sqrt(7.0 / 3), 1e-15));  // (16 + 1 + 25) / 9 / 2
  CHECK(three.min == 1);
  CHECK(three.median == 2);
  CHECK(three.max == 4);
  CHECK(spread({4, 1, 2, 3}).median == 2.5);
  CHECK(spread({3}).mean == 3);
  CHECK_FALSE(spread({3}).sd.has_value());
}

TEST_CASE("a spread leaves out what is not known", "[train]") {
  const double unknown = std::numeric_limits<double>::quiet_NaN(),
               never = std::numeric_limits<double>::infinity();
  CHECK(spread({unknown, 5}).median == 5);
  CHECK(spread({unknown, 5}).count == 1);
  CHECK(std::isnan(spread({unknown}).median));
  CHECK(std::isnan(spread({}).mean));
  CHECK(spread({}).count == 0);
  CHECK(spread({1, never, never}).median == never);
}

TEST_CASE("a quantile lies between the two nearest values", "[train]") {
  CHECK(quantile({1, 2, 4, 8}, 0) == 1);
  CHECK(quantile({1, 2, 4, 8}, 1) == 8);
  CHECK(quantile({1, 2, 4, 8}, 0.5) == 3);
  CHECK(quantile({1, 2, 4, 8}, 0.75) == 5);
  CHECK(quantile({7}, 0.3) == 7);
}
