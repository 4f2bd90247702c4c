#include "thimble/engine/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "catch.h"
#include "source_directory.h"
#include "thimble/train/file.h"

using namespace thimble;

namespace {

double factor(ScheduleKind kind, std::int64_t warmup, std::int64_t t, std::int64_t steps = 100) {
  return schedule_factor({.name = kind, .warmup = warmup}, 0.01, t, steps);
}

// Returns the learning rate that falls from 0.01 to 0.002 after 20 of 100 steps.
double rate(ScheduleKind kind, std::int64_t t) {
  return 0.01 * schedule_factor({.name = kind, .warmup = 20, .final = 0.002}, 0.01, t, 100);
}

double cosine(double t) { return (1 + std::cos(std::numbers::pi * t / 100)) / 2; }

}  // namespace

TEST_CASE("every warm-up rises in a straight line from 0", "[optim]") {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine,
                          ScheduleKind::inverse_sqrt, ScheduleKind::cosine_decay}) {
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

TEST_CASE("cosine with a warm-up stays below the learning rate", "[optim]") {
  double highest = 0;
  for (std::int64_t t = 0; t < 20; ++t) highest = std::max(highest, factor(ScheduleKind::cosine, 10, t, 20));
  CHECK_THAT(highest, WithinAbs(0.523607, 1e-6));
}

// get_cosine_schedule_with_warmup of Hugging Face is max(0, (1 + cos(pi 2 c progress)) / 2) with c = 0.5.
TEST_CASE("cosine_decay is Hugging Face's cosine with warm-up", "[optim]") {
  for (const std::int64_t t : {20, 21, 40, 60, 99}) {
    const double progress = static_cast<double>(t - 20) / std::max(1.0, 100.0 - 20);
    CHECK_THAT(factor(ScheduleKind::cosine_decay, 20, t),
               WithinAbs(std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * 0.5 * 2 * progress))), 1e-15));
  }
  CHECK(factor(ScheduleKind::cosine_decay, 20, 20) == 1);
  CHECK_THAT(factor(ScheduleKind::cosine_decay, 20, 60), WithinAbs(0.5, 1e-15));
  for (const std::int64_t t : {0, 25, 99})
    CHECK(factor(ScheduleKind::cosine_decay, 0, t) == factor(ScheduleKind::cosine, 0, t));
}

// get_lr of nanoGPT is min_lr + (1 + cos(pi decay_ratio)) / 2 (learning_rate - min_lr).
TEST_CASE("linear and cosine_decay fall to the final learning rate", "[optim]") {
  for (const std::int64_t t : {20, 21, 40, 60, 99, 100}) {
    const double ratio = static_cast<double>(t - 20) / (100 - 20);
    CHECK_THAT(rate(ScheduleKind::cosine_decay, t),
               WithinAbs(0.002 + 0.5 * (1 + std::cos(std::numbers::pi * ratio)) * (0.01 - 0.002), 1e-16));
    CHECK_THAT(rate(ScheduleKind::linear, t), WithinAbs(0.01 + ratio * (0.002 - 0.01), 1e-16));
  }
  for (const auto kind : {ScheduleKind::linear, ScheduleKind::cosine_decay}) {
    CHECK(rate(kind, 0) == 0);  // the warm-up rises from 0, not from the final rate
    CHECK_THAT(rate(kind, 10), WithinAbs(0.005, 1e-16));
    CHECK_THAT(rate(kind, 100), WithinAbs(0.002, 1e-16));
    CHECK(0.5 * schedule_factor({.name = kind, .final = 0.5}, 0.5, 70, 100) == 0.5);
  }
}

TEST_CASE("inverse_sqrt peaks at 1 when the warm-up ends", "[optim]") {
  CHECK(factor(ScheduleKind::inverse_sqrt, 16, 16) == 1);
  CHECK(factor(ScheduleKind::inverse_sqrt, 16, 64) == 0.5);
  CHECK(factor(ScheduleKind::inverse_sqrt, 4, 100, 1000) == 0.2);
  CHECK(factor(ScheduleKind::inverse_sqrt, 0, 1) == 1);
  CHECK(factor(ScheduleKind::inverse_sqrt, 0, 25) == 0.2);
}

TEST_CASE("a warm-up longer than the run never ends", "[optim]") {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::inverse_sqrt,
                          ScheduleKind::cosine_decay}) {
    CHECK(factor(kind, 200, 99) == 99.0 / 200);
  }
}

TEST_CASE("the pictures of docs/configs.md are those of the schedules", "[optim]") {
  const std::string page = read_file(source_directory() + "/docs/configs.md");
  constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::pair<const char*, ScheduleKind> kinds[] = {{"constant", ScheduleKind::constant},
                                                        {"linear", ScheduleKind::linear},
                                                        {"cosine_decay", ScheduleKind::cosine_decay},
                                                        {"cosine", ScheduleKind::cosine},
                                                        {"inverse_sqrt", ScheduleKind::inverse_sqrt}};
  for (const auto& [name, kind] : kinds) {
    const bool falls = kind == ScheduleKind::linear || kind == ScheduleKind::cosine_decay;
    std::string picture;
    for (std::int64_t t = 0; t < 32; ++t) {
      const double share = schedule_factor({.name = kind, .warmup = 8, .final = falls ? 0.25 : 0}, 1, t, 32);
      picture += kBlocks[static_cast<std::size_t>(std::floor(7 * share + 0.5))];
    }
    const std::size_t row = page.find("\n| `" + std::string(name) + "` | ", page.find("| picture |"));
    REQUIRE(row != page.npos);
    CHECK_THAT(page.substr(row + 1, page.find('\n', row + 1) - row), ContainsSubstring(picture));
  }
}
