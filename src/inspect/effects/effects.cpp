#include "thimble/inspect/effects/effects.h"

#include <algorithm>
#include <cmath>

#include "thimble/core/error.h"
#include "thimble/core/json.h"
#include "thimble/core/random.h"
#include "thimble/core/statistics.h"

namespace thimble {

std::vector<Interval> bootstrap(const std::vector<std::vector<double>>& sums, std::span<const double> counts,
                                std::uint64_t seed) {
  const std::size_t n = counts.size();
  require<ShapeError>(n > 0, "bootstrap: 0 sequences; at least 1 is needed");
  for (const auto& sum : sums)
    require<ShapeError>(sum.size() == n, "bootstrap: {} sums for {} sequences", sum.size(), n);
  const Random random(seed, Stream::inspect);
  std::vector<std::vector<double>> draws(sums.size());
  std::vector<double> times(n);  // how often a sequence is drawn
  for (std::uint32_t draw = 0; draw < kBootstrapDraws; ++draw) {
    std::ranges::fill(times, 0);
    double count = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto drawn = static_cast<std::size_t>(random.below(n, i, draw));
      times[drawn] += 1;
      count += counts[drawn];
    }
    for (std::size_t k = 0; k < sums.size(); ++k) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += times[i] * sums[k][i];
      draws[k].push_back(sum / std::max(1.0, count));
    }
  }
  std::vector<Interval> intervals;
  for (auto& values : draws) {
    std::ranges::sort(values);
    intervals.push_back({quantile(values, 0.025), quantile(values, 0.975)});
  }
  return intervals;
}

Json to_json(const Interval& interval) { return {interval.low, interval.high}; }

Json to_json(const Effect& effect) {
  return {{"loss_change", effect.loss_change},
          {"accuracy_change", effect.accuracy_change},
          {"interval", to_json(effect.interval)},
          {"accuracy_interval", to_json(effect.accuracy_interval)}};
}

Json to_json(const HeadEffects& head) {
  return {{"zero", to_json(head.zero)}, {"mean", to_json(head.mean)}, {"resample", to_json(head.resample)}};
}

Json to_json(const Importance& importance) {
  return {{"raw", importance.raw}, {"normalized", importance.normalized}};
}

Json to_json(const RemovalStep& step) {
  return {{"removed", step.removed},
          {"layer", step.id ? Json(step.id->layer) : Json()},
          {"head", step.id ? Json(step.id->head) : Json()},
          {"loss", step.loss},
          {"accuracy", step.accuracy}};
}

}  // namespace thimble
