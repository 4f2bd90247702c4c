#include "thimble/optim/schedule.h"

#include <cmath>
#include <numbers>

#include "catch.h"

using namespace thimble;

namespace {

double factor(ScheduleKind kind, std::int64_t warmup, std::int64_t t, std::int64_t steps = 100) {
  return schedule_factor({.name = kind, .warmup = warmup}, t, steps);
}

double cosine(double t) { return (1 + std::cos(std::numbers::pi * t / 100)) / 2; }

}  // namespace

TEST_CASE("every warm-up rises in a straight line from 0", "[optim]") {
  for (const auto kind :
       {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine, ScheduleKind::inverse_sqrt}) {
    for (const std::int64_t t : {0, 1, 7, 19}) {
      const double shape = kind == ScheduleKind::cosine ? cosine(static_cast<double>(t)) : 1;
      CHECK_THAT(factor(kind, 20, t), WithinAbs(static_cast<double>(t) / 20 * shape, 1e-15));
    }
    CHECK(factor(kind, 0, 0) == 1);  // without warm-up it starts at the peak
  }
}

TEST_CASE("constant stays at 1", "[optim]") {
  for (const std::int64_t t : {20, 50, 99}) CHECK(factor(ScheduleKind::constant, 20, t) == 1);
}

TEST_CASE("linear falls to 0 just after the last step", "[optim]") {
  CHECK(factor(ScheduleKind::linear, 20, 20) == 1);
  CHECK(factor(ScheduleKind::linear, 20, 60) == 0.5);
  CHECK(factor(ScheduleKind::linear, 20, 99) == 1.0 / 80);
  CHECK(factor(ScheduleKind::linear, 0, 25) == 0.75);
}

TEST_CASE("cosine is half a wave over all steps", "[optim]") {
  for (const std::int64_t t : {20, 25, 50, 75, 99}) {
    CHECK_THAT(factor(ScheduleKind::cosine, 20, t), WithinAbs(cosine(static_cast<double>(t)), 1e-15));
  }
  CHECK_THAT(factor(ScheduleKind::cosine, 0, 50), WithinAbs(0.5, 1e-15));
  CHECK_THAT(factor(ScheduleKind::cosine, 0, 25), WithinAbs(0.853553390593273762, 1e-15));
  CHECK(factor(ScheduleKind::cosine, 0, 99) > 0);
}

TEST_CASE("inverse_sqrt peaks at 1 when the warm-up ends", "[optim]") {
  CHECK(factor(ScheduleKind::inverse_sqrt, 16, 16) == 1);
  CHECK(factor(ScheduleKind::inverse_sqrt, 16, 64) == 0.5);
  CHECK(factor(ScheduleKind::inverse_sqrt, 4, 100, 1000) == 0.2);
  CHECK(factor(ScheduleKind::inverse_sqrt, 0, 1) == 1);
  CHECK(factor(ScheduleKind::inverse_sqrt, 0, 25) == 0.2);
}

TEST_CASE("a warm-up longer than the run never ends", "[optim]") {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::inverse_sqrt}) {
    CHECK(factor(kind, 200, 99) == 99.0 / 200);
  }
}
