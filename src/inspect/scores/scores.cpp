#include "thimble/inspect/scores.h"

#include <algorithm>
#include <cmath>

#include "engine/core/portable_math.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"

namespace thimble {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kRowError = 1e-3;  // allowed error of a sum over thousands of floats
constexpr double kUniform = 1e-12;  // squared distance from uniform of a uniform row with rounding

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Returns whether a weight is more than half of a query's attention.
bool is_majority(double weight) { return weight > 0.5; }

}  // namespace

HeadScorer::HeadScorer(std::int64_t queries, std::int64_t keys, Visibility visibility)
    : queries_(queries),
      keys_(keys),
      visibility_(visibility),
      offset_(at(queries + keys - 1)),
      position_(at(keys)),
      weights_(queries, keys) {}

HeadScorer::HeadScorer(std::int64_t length, bool causal)
    : HeadScorer(length, length, causal ? Visibility::earlier : Visibility::all) {}

HeadScorer HeadScorer::cross(std::int64_t queries, std::int64_t keys) {
  return {queries, keys, Visibility::source};
}

void HeadScorer::add(const ScoreTargets& targets, std::span<const double> weights,
                     const TargetCounts* counts) {
  require<ShapeError>(targets.queries() <= queries_ && targets.keys() <= keys_,
                      "head scorer: {} queries and {} keys exceed the {} and {} of the scorer",
                      targets.queries(), targets.keys(), queries_, keys_);
  require<ShapeError>(targets.visibility() == visibility_,
                      "head scorer: the targets have another visibility than the scorer");
  require<ShapeError>(std::ssize(weights) == queries_ * keys_, "head scorer: {} weights, not {} x {}",
                      weights.size(), queries_, keys_);
  keys_weight_.assign(at(targets.keys()), 0);
  std::vector<double>& counted = counted_[{targets.queries(), targets.keys()}];
  counted.resize(at(targets.queries()));
  if (counted_weights_.empty() && targets.queries_of(0) < targets.queries())
    counted_weights_ = weights_.sums();
  for (std::int64_t i = 0; i < targets.queries(); ++i) {
    if (!targets.counts(i)) continue;
    ++counted[at(i)];
    add_row(targets, i, weights.data() + i * keys_);
    for (std::int64_t j = 0; !counted_weights_.empty() && j < targets.visible(i); ++j)
      counted_weights_[at(i * keys_ + j)] += weights[at(i * keys_ + j)];
  }
  if (visibility_ == Visibility::earlier) {
    std::vector<double> seen(weights.begin(), weights.end());  // masked keys are not read
    for (std::int64_t i = 0; i < queries_; ++i)
      std::fill(seen.begin() + i * keys_ + visible(i, keys_), seen.begin() + (i + 1) * keys_, 0.0);
    weights_.add(seen.data(), keys_, targets.queries(), targets.keys());
  } else {
    weights_.add(weights.data(), keys_, targets.queries(), targets.keys());
  }
  content_.resize(std::max(content_.size(), targets.sums().size()));
  counts_ = counts;
  for (std::int64_t j = 0; j < targets.keys(); ++j) {
    position_[at(j)].value += keys_weight_[at(j)];
    if (counts != nullptr) token_[targets.tokens()[at(j)]] += keys_weight_[at(j)];
  }
  const TargetCounts::Group* const group = counts == nullptr ? nullptr : &counts->of(targets);
  for (std::size_t s = 0; s < targets.sums().size(); ++s)
    add_content(content_[s], targets, s, weights, group);
}

void HeadScorer::add_content(Mean& mean, const ScoreTargets& targets, std::size_t score,
                             std::span<const double> weights, const TargetCounts::Group* group) const {
  const ScoreTargets::Sum& sum = targets.sums()[score];
  double value = 0, same_class = 0;
  std::vector<double> own(at(targets.queries()));
  for (const auto& [query, key] : sum.cells) {
    value += weights[at(query * keys_ + key)];
    own[at(query)] += weights[at(query * keys_ + key)];
  }
  for (const auto& [query, key, share] : sum.rivals) same_class += share * weights[at(query * keys_ + key)];
  if (!sum.other_queries.empty()) {
    for (std::size_t j = 0; j < keys_weight_.size(); ++j)
      same_class += sum.other_queries[j] * keys_weight_[j];
    for (const auto& [query, key] : sum.cells)
      same_class -= sum.other_queries[at(key)] * weights[at(query * keys_ + key)];
  }
  mean.value += value;
  mean.majority += static_cast<double>(std::ranges::count_if(own, is_majority));
  mean.chance += sum.chance;
  mean.attainable += sum.attainable;
  mean.eligible += static_cast<double>(sum.eligible);
  mean.has_class |= sum.has_rivals;
  mean.same_class += same_class;
  if (group == nullptr) return;
  mean.has_positions = true;
  const std::vector<std::uint32_t>& cells = group->cells[score];
  for (std::int64_t i = 0; i < targets.queries(); ++i) {
    if (cells.empty() || !targets.counts(i)) continue;
    double all = 0;
    for (std::int64_t j = 0; j < targets.visible(i); ++j)
      all += static_cast<double>(cells[at(i * targets.keys() + j)]) * weights[at(i * keys_ + j)];
    const auto others = static_cast<double>(group->sequences[at(i)] - 1);
    mean.same_positions += others > 0 ? (all - own[at(i)]) / others : own[at(i)];
  }
}

void HeadScorer::add_row(const ScoreTargets& targets, std::int64_t query, const double* row) {
  const std::int64_t visible = targets.visible(query);
  Mean* offset = offset_.data() + (queries_ - 1 - query);
  double total = 0, entropy = 0;
  for (std::int64_t j = 0; j < visible; ++j) {
    total += row[j];
    offset[j].value += row[j];
    keys_weight_[at(j)] += row[j];
    if (row[j] > 0) entropy -= row[j] * portable::log(row[j]);
    if (!is_majority(row[j])) continue;
    ++offset[j].majority;
    ++position_[at(j)].majority;
  }
  require<NumericError>(
      std::abs(total - 1) <= kRowError,
      "head scorer: the weights of query {} on its {} visible keys sum to {}, not 1; pass them after mask and softmax, before dropout",
      query, visible, total);
  if (visible > 1) {
    entropy_ += entropy / portable::log(static_cast<double>(visible));
    ++entropy_queries_;
  }
  const std::int64_t mirrored = targets.keys() - 1 - query;
  if (mirrored >= 0 && mirrored < visible) {
    mirror_.value += row[mirrored];
    mirror_.majority += is_majority(row[mirrored]) ? 1 : 0;
  }
  for (std::int64_t j = 0; j < visible; ++j) {
    const double excess = row[j] - 1 / static_cast<double>(visible);
    squares_ += excess * excess;
  }
}

HeadScore HeadScorer::Mean::score(std::string_view name) const {
  HeadScore score{.name = name, .value = kNaN, .chance = kNaN, .attainable = kNaN};
  if (eligible == 0) return score;
  score.value = value / eligible;
  score.chance = chance / eligible;
  score.attainable = attainable / eligible;
  score.eligible = std::llround(eligible);
  score.majority = majority / eligible;
  if (has_positions) score.same_positions = same_positions / eligible;
  if (has_class) score.same_class = same_class / eligible;
  return score;
}

// The scores that depend on positions alone.
struct HeadScorer::Positions {
  std::vector<Mean> offset;    // offset k at index k + T - 1
  std::vector<Mean> position;  // position k at index k
  Mean mirror, distance{}, signed_distance{};
};

HeadScorer::Positions HeadScorer::positions() const {
  Positions out{.offset = offset_, .position = position_, .mirror = mirror_};
  for (std::size_t k = 0; k < offset_.size(); ++k) {
    const double distance = static_cast<double>(k) - static_cast<double>(queries_ - 1);
    out.distance.value += offset_[k].value * std::abs(distance);
    out.signed_distance.value += offset_[k].value * distance;
  }
  out.distance.majority = out.signed_distance.majority = kNaN;
  for (const auto& [size, counts] : counted_) add_positions(out, size.second, counts);
  return out;
}

// Adds chance, attainable and eligible of sequences with that many keys, in which each query counts so often.
void HeadScorer::add_positions(Positions& out, std::int64_t keys, const std::vector<double>& counts) const {
  for (std::int64_t i = 0; i < std::ssize(counts); ++i) {
    const double count = counts[at(i)];
    if (count == 0) continue;
    const std::int64_t end = visible(i, keys);
    const double uniform = count / static_cast<double>(end);
    const auto target = [&](Mean& mean, std::int64_t key) {
      mean.eligible += count;
      if (key >= end) return;
      mean.chance += uniform;
      mean.attainable += count;
    };
    for (std::int64_t j = 0; j < keys; ++j) target(out.offset[at(j - i + queries_ - 1)], j);
    for (std::int64_t k = 0; k < keys_; ++k) target(out.position[at(k)], k);
    if (i < keys) target(out.mirror, keys - 1 - i);
    for (std::int64_t j = 0; j < end; ++j) {
      out.distance.chance += uniform * static_cast<double>(std::abs(j - i));
      out.signed_distance.chance += uniform * static_cast<double>(j - i);
    }
    out.distance.attainable += count * static_cast<double>(std::max(i, end - 1 - i));
    out.signed_distance.attainable += count * static_cast<double>(end - 1 - i);
    out.distance.eligible += count;
    out.signed_distance.eligible += count;
  }
}

HeadScore HeadScorer::positional_share() const {
  HeadScore score{.name = "positional_share", .value = kNaN, .chance = kNaN, .attainable = kNaN};
  std::vector<double> excess =
      counted_weights_.empty() ? weights_.sums() : counted_weights_;  // over uniform weights
  std::vector<double> counts(excess.size());
  for (const auto& [size, counted] : counted_)
    for (std::int64_t i = 0; i < size.first; ++i) {
      const std::int64_t end = visible(i, size.second);
      for (std::int64_t j = 0; j < end; ++j) {
        excess[at(i * keys_ + j)] -= counted[at(i)] / static_cast<double>(end);
        counts[at(i * keys_ + j)] += counted[at(i)];
      }
    }
  double of_means = 0, all = squares_;
  double queries = 0;
  for (std::size_t cell = 0; cell < counts.size(); ++cell) {
    if (counts[cell] == 0) continue;
    const double square = excess[cell] * excess[cell] / counts[cell];
    (counts[cell] > 1 ? of_means : all) += counts[cell] > 1 ? square : -square;
    // Each sequence that has a query has its first key.
    if (counts[cell] > 1 && cell % at(keys_) == 0) queries += counts[cell];
  }
  if (queries == 0 || all <= kUniform * queries) return score;
  score.value = of_means / all;
  score.attainable = 1;
  score.eligible = std::llround(queries);
  return score;
}

// Returns the same_tokens baseline of a position, for a score over that many queries.
double HeadScorer::same_tokens(std::int64_t position, double queries) const {
  double visible = 0, compared = 0, sum = 0;
  for (const auto& [token, pairs] : counts_->pairs_at(position)) visible += pairs;
  const double mean = position_[at(position)].value / visible;
  for (const auto& [token, pairs] : counts_->pairs_at(position)) {
    const double elsewhere = counts_->pairs().at(token) - pairs;
    if (elsewhere <= 0) continue;
    compared += pairs;
    sum += pairs * std::max(0.0, token_.at(token) - pairs * mean) / elsewhere;
  }
  return compared > 0 ? sum / compared * visible / queries : kNaN;
}

namespace {

// Returns the score of the k whose value is furthest above chance, or of k = *given; means[0] is of k = first.
template <class Means, class Allowed>
HeadScore best_of(std::string_view name, const Means& means, std::int64_t first, const Allowed& allowed,
                  std::optional<std::int64_t> given) {
  HeadScore best{.name = name, .value = kNaN, .chance = kNaN, .attainable = kNaN};
  for (std::size_t k = 0; k < means.size(); ++k) {
    const std::int64_t here = first + static_cast<std::int64_t>(k);
    HeadScore score = means[k].score(name);
    if (given ? here != *given : score.eligible == 0 || score.attainable == 0 || !allowed(score)) continue;
    if (best.eligible > 0 && score.value - score.chance <= best.value - best.chance) continue;
    best = score;
    best.at = here;
  }
  return best;
}

}  // namespace

std::vector<HeadScore> HeadScorer::scores(std::span<const std::string_view> kinds,
                                          std::span<const HeadScore> like) const {
  const Positions p = positions();
  const auto offset = [&](std::string_view name, std::int64_t k) {
    const bool none = visibility_ == Visibility::source || std::abs(k) >= queries_ ||
                      (visibility_ == Visibility::earlier && k > 0);
    return (none ? Mean() : p.offset[at(k + queries_ - 1)]).score(name);
  };
  const auto given = [&](std::string_view name) {
    return like.empty() ? std::nullopt : find_score(like, name).at;
  };
  const auto queries = static_cast<double>(entropy_queries_);
  const Mean entropy{
      .value = entropy_, .chance = queries, .attainable = queries, .eligible = queries, .majority = kNaN};
  const std::int64_t all = std::llround(p.distance.eligible);
  std::vector<HeadScore> out = {
      entropy.score("entropy"),
      p.distance.score("distance"),
      p.signed_distance.score("signed_distance"),
      offset("self", 0),
      p.position[0].score("first"),  // position 0 is visible to every query
      positional_share(),
      offset("previous_token", -1),
      offset("next_token", 1),
      p.mirror.score("mirror"),
      best_of(
          "offset", p.offset, 1 - queries_,
          [&](const HeadScore& score) { return 20 * score.eligible >= 9 * all; }, given("offset")),
      best_of(
          "absolute_position", p.position, 0, [](const HeadScore&) { return true; },
          given("absolute_position"))};
  HeadScore& position = out.back();
  if (counts_ != nullptr && position.eligible > 0)
    position.same_tokens = same_tokens(*position.at, static_cast<double>(position.eligible));
  for (std::size_t s = 0; s < ScoreTargets::kScores; ++s)
    out.push_back(content_[s].score(ScoreTargets::kNames[s]));
  std::ranges::sort(out, {}, [](const HeadScore& score) {
    return std::ranges::find(kScoreTable, score.name, &ScoreInfo::name);
  });
  for (std::size_t kind = 0; kinds.size() > 1 && kind < kinds.size(); ++kind) {
    const std::size_t index = ScoreTargets::kScores + kind;
    out.push_back((index < content_.size() ? content_[index] : Mean()).score("task_target"));
    out.back().kind = kinds[kind];
  }
  return out;
}

const HeadScore& find_score(std::span<const HeadScore> scores, std::string_view name) {
  const auto found = std::ranges::find(scores, name, &HeadScore::name);
  require<Error>(found != scores.end(), "head scores: there is no score {}", name);
  return *found;
}

double strength(double value, double chance, double attainable) {
  return attainable > chance && !std::isnan(value) ? (value - chance) / (attainable - chance) : 0;
}

void set_at_init(std::span<HeadScore> scores, std::span<const HeadScore> initial) {
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i].at_init = initial[i].value;
}

void set_varied(std::span<HeadScore> scores, std::span<const HeadScore> varied) {
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const HeadScore& v = varied[i];
    scores[i].varied = {v.value, v.chance, v.matched(), v.attainable, v.eligible};
  }
}

namespace {

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json score_json(const HeadScore& score) {
  Json entry = {{"value", number_json(score.value)},
                {"chance", number_json(score.chance)},
                {"at_init", number_json(score.at_init)},
                {"attainable", number_json(score.attainable)},
                {"eligible", score.eligible}};
  if (score.at) entry["at"] = *score.at;
  if (!std::isnan(score.majority)) entry["majority"] = score.majority;
  for (const auto& [name, baseline] : {std::pair("same_positions", score.same_positions),
                                       {"same_class", score.same_class},
                                       {"same_tokens", score.same_tokens}}) {
    if (std::isnan(baseline)) continue;
    entry[name] = baseline;
    entry["matched"] = score.matched();
  }
  if (score.varied) {
    entry["varied"] = {{"value", number_json(score.varied->value)},
                       {"chance", number_json(score.varied->chance)},
                       {"matched", number_json(score.varied->matched)},
                       {"attainable", number_json(score.varied->attainable)},
                       {"eligible", score.varied->eligible}};
  }
  return entry;
}

}  // namespace

Json score_table() {
  Json out = Json::array();
  for (const ScoreInfo& score : kScoreTable)
    out.push_back(
        {{"name", score.name}, {"title", score.title}, {"meaning", score.meaning}, {"target", score.target}});
  return out;
}

Json to_json(std::span<const HeadScore> scores) {
  auto out = Json::object();
  for (const HeadScore& score : scores) {
    Json& entry = out[std::string(score.name)];
    if (score.kind.empty())
      entry = score_json(score);
    else
      entry["kinds"][std::string(score.kind)] = score_json(score);
  }
  return out;
}

}  // namespace thimble
