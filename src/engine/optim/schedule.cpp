#include "thimble/engine/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/core/portable_math.h"

namespace thimble {

double schedule_factor(const ScheduleConfig& schedule, double lr, std::int64_t t, std::int64_t steps) {
  const auto now = static_cast<double>(t), end = static_cast<double>(steps);
  const auto warmup = static_cast<double>(schedule.warmup);
  const double rise = t < schedule.warmup ? now / warmup : 1;
  const auto fall = [&](double share) {
    const double floor = schedule.final / lr;
    return floor + (1 - floor) * share;
  };
  switch (schedule.name) {
    case ScheduleKind::constant:
      return rise;
    case ScheduleKind::linear:
      return t < schedule.warmup ? rise : fall((end - now) / (end - warmup));
    case ScheduleKind::cosine:
      return rise * 0.5 * (1 + portable::cos(std::numbers::pi * now / end));
    case ScheduleKind::cosine_decay: {
      const double angle = std::numbers::pi * (now - warmup) / (end - warmup);
      return t < schedule.warmup ? rise : fall(0.5 * (1 + portable::cos(angle)));
    }
    case ScheduleKind::inverse_sqrt: {
      const double peak = std::max(warmup, 1.0);
      return rise * (now <= peak ? 1 : std::sqrt(peak / now));
    }
  }
  return rise;
}

}  // namespace thimble
