#include "inspect/timeline/head_log.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "inspect/scores/score_observer.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/patterns.h"
#include "thimble/train/json.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

Json rounded_or_null(const HeadScore& score, double number) {
  if (score.eligible < kEnoughQueries || !std::isfinite(number)) return nullptr;
  return std::round(1e6 * number) / 1e6;
}

// Sets the levels of the scores without a best k, which is a head's own.
void set_levels(Json& json, const std::vector<HeadScore>& scores) {
  for (const HeadScore& score : scores) {
    if (score.at) continue;
    json["chance"][score.name] = rounded_or_null(score, score.chance);
    json["attainable"][score.name] = rounded_or_null(score, score.attainable);
    json["eligible"][score.name] = score.eligible;
  }
}

Json scores_json(const std::vector<HeadScorer>& scorers, const ModelConfig& model) {
  const std::vector<AttentionLayer> layers = attention_layers(model);
  Json json = {{"chance", Json::object()},
               {"attainable", Json::object()},
               {"eligible", Json::object()},
               {"heads", Json::array()}};
  for (std::size_t i = 0; i < scorers.size(); ++i) {
    const auto [number, head] = std::div(static_cast<std::int64_t>(i), model.heads);
    const AttentionLayer& layer = layers[static_cast<std::size_t>(number)];
    const std::vector<HeadScore> scores = scorers[i].scores();
    Json values = Json::object();
    for (const HeadScore& score : scores) values[score.name] = rounded_or_null(score, score.value);
    Json& entry = json["heads"].emplace_back(Json{{"layer", number}, {"head", head}, {"scores", values}});
    for (const HeadScore& score : scores)
      if (score.at) entry["eligible"][score.name] = score.eligible;
    if (!layer.stack.empty()) entry["attention"] = layer.name();
    if (i == 0 && layer.stack.empty()) set_levels(json, scores);
    const auto queries = find_score(scores, "distance").eligible;  // of all, where the last block has fewer
    if (!layer.stack.empty() || json["eligible"]["distance"] != queries) set_levels(entry, scores);
  }
  return json;
}

Json score_heads(Evaluator& evaluator, WeightsView weights) {
  std::ranges::copy(std::get<std::span<const Real>>(weights),
                    evaluator.model().parameters().values().begin());
  Json snapshot{{"loss", nullptr}, {"sequences", evaluator.sequences()}, {"labels", nullptr}};
  try {
    const EvalResult result = evaluator.run();
    snapshot["loss"] = result.loss;
    snapshot["labels"] = result.labels;
    ScoreObserver observer(evaluator);
    evaluator.observe(observer);
    snapshot.update(scores_json(observer.heads(), evaluator.model().config()));
  } catch (const NumericError&) {
    snapshot.update(scores_json({}, evaluator.model().config()));
  }
  return snapshot;
}

}  // namespace

}  // namespace THIMBLE_PRECISION

template <>
HeadLog make_head_log<Real>(const OpenConfig& config) {
  require<DataError>(config.data.validation > 0,
                     "train.log_heads: requires validation sequences, data.validation is {}",
                     config.data.validation);
  const auto evaluator = std::make_shared<Evaluator>(config);
  evaluator->select(Split::validation, kLoggedSequences);
  return [evaluator](WeightsView weights) { return score_heads(*evaluator, weights); };
}

}  // namespace thimble
