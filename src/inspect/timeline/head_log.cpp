#include "thimble/inspect/timeline/head_log.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "inspect/scores/score_observer.h"
#include "thimble/core/error.h"
#include "thimble/core/json.h"
#include "thimble/inspect/scores/patterns.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

HeadLog make_head_log(const Config& config);

namespace {

Json known(const HeadScore& score, double number) {
  if (score.eligible < kEnoughQueries || !std::isfinite(number)) return nullptr;
  return std::round(1e6 * number) / 1e6;
}

// `number` of the scores without a best k, for which every head has the same.
Json shared(const std::vector<HeadScore>& scores, double HeadScore::*number) {
  Json values = Json::object();
  for (const HeadScore& score : scores)
    if (!score.at) values[score.name] = known(score, score.*number);
  return values;
}

Json scores_json(const std::vector<HeadScorer>& scorers, const ModelConfig& model) {
  const std::vector<AttentionLayer> layers = attention_layers(model);
  Json json = {{"chance", Json::object()}, {"attainable", Json::object()}, {"heads", Json::array()}};
  for (std::size_t i = 0; i < scorers.size(); ++i) {
    const auto [number, head] = std::div(static_cast<std::int64_t>(i), model.heads);
    const AttentionLayer& layer = layers[static_cast<std::size_t>(number)];
    const std::vector<HeadScore> scores = scorers[i].scores();
    Json values = Json::object();
    for (const HeadScore& score : scores) values[score.name] = known(score, score.value);
    Json& entry = json["heads"].emplace_back(Json{{"layer", number}, {"head", head}, {"scores", values}});
    if (!layer.stack.empty()) entry["attention"] = layer.name();
    Json& common = layer.stack.empty() ? json : entry;
    if (!layer.stack.empty() || i == 0) {
      common["chance"] = shared(scores, &HeadScore::chance);
      common["attainable"] = shared(scores, &HeadScore::attainable);
    }
  }
  return json;
}

Json look(Evaluator& evaluator, WeightsView weights) {
  std::ranges::copy(std::get<std::span<const Real>>(weights),
                    evaluator.model().parameters().values().begin());
  Json said{{"loss", nullptr}};
  try {
    said["loss"] = evaluator.run().loss;
    ScoreObserver observer(evaluator);
    evaluator.observe(observer);
    said.update(scores_json(observer.heads(), evaluator.model().config()));
  } catch (const NumericError&) {
    said.update(scores_json({}, evaluator.model().config()));
  }
  return said;
}

}  // namespace

HeadLog make_head_log(const Config& config) {
  require<DataError>(config.data.validation > 0,
                     "train.log_heads: there are no validation sequences to score heads on");
  const auto evaluator = std::make_shared<Evaluator>(config);
  evaluator->select(Split::validation, kLoggedSequences);
  return [evaluator](WeightsView weights) { return look(*evaluator, weights); };
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
