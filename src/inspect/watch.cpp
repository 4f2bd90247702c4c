#include "thimble/inspect/watch.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "inspect/score_watcher.h"
#include "thimble/core/error.h"
#include "thimble/inspect/label.h"

namespace thimble::inline THIMBLE_PRECISION {

using Json = nlohmann::ordered_json;

HeadWatch make_head_watch(const Config& config);

namespace {

Json known(const HeadScore& score, double number) {
  if (score.eligible < kEnoughQueries || !std::isfinite(number)) return nullptr;
  return std::round(1e6 * number) / 1e6;
}

Json scores_json(const std::vector<HeadScorer>& scorers, std::int64_t heads_of_layer) {
  Json chance = Json::object(), attainable = Json::object(), heads = Json::array();
  for (std::size_t i = 0; i < scorers.size(); ++i) {
    const auto [layer, head] = std::div(static_cast<std::int64_t>(i), heads_of_layer);
    Json values = Json::object();
    for (const HeadScore& score : scorers[i].scores()) {
      values[score.name] = known(score, score.value);
      if (i > 0 || score.at) continue;
      chance[score.name] = known(score, score.chance);
      attainable[score.name] = known(score, score.attainable);
    }
    heads.push_back({{"layer", layer}, {"head", head}, {"scores", values}});
  }
  return {{"chance", chance}, {"attainable", attainable}, {"heads", heads}};
}

Json look(Subject& subject, WeightsView weights) {
  std::ranges::copy(std::get<std::span<const Real>>(weights), subject.model().parameters().values().begin());
  Json said{{"loss", nullptr}};
  try {
    said["loss"] = subject.run().total.loss;
    ScoreWatcher watcher(subject);
    subject.watch(watcher);
    said.update(scores_json(watcher.heads(), subject.model().config().heads));
  } catch (const NumericError&) {
    said.update(scores_json({}, 1));
  }
  return said;
}

}  // namespace

HeadWatch make_head_watch(const Config& config) {
  require<DataError>(config.data.validation > 0,
                     "train.watch_heads: there are no validation sequences to watch");
  const auto subject = std::make_shared<Subject>(config, Split::validation, kWatchedSequences);
  return [subject](WeightsView weights) { return look(*subject, weights); };
}

}  // namespace thimble::inline THIMBLE_PRECISION
