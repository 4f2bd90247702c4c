#include "thimble/inspect/scores.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "thimble/core/error.h"

namespace thimble {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kRowError = 1e-3;  // of a sum over thousands of floats
constexpr double kUniform = 1e-12;  // squared distance from uniform of a row of rounded weights

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

ScoreTargets::ScoreTargets(std::span<const std::int32_t> tokens, bool causal,
                           std::span<const Dataset::Link> links, std::span<const std::int32_t> special_tokens)
    : length_(std::ssize(tokens)), causal_(causal) {
  const auto is_special = [&](std::int64_t j) {
    return std::ranges::find(special_tokens, tokens[at(j)]) != special_tokens.end();
  };
  for (const Dataset::Link& link : links) {
    require<ShapeError>(link.query >= 0 && link.query < length_ && link.key >= 0 && link.key < length_,
                        "score targets: link from {} to {} in a sequence of {} tokens", link.query, link.key,
                        length_);
  }
  std::vector<std::int64_t> same, earlier, after, marks, named;
  for (std::int64_t i = 0; i < length_; ++i) {
    for (std::vector<std::int64_t>* keys : {&same, &earlier, &after, &marks, &named}) keys->clear();
    for (std::int64_t j = 0; j < length_; ++j) {
      const bool equal = j != i && tokens[at(j)] == tokens[at(i)];
      if (equal) same.push_back(j);
      if (equal && j < i) earlier.push_back(j);
      if (equal && j < i) after.push_back(j + 1);
      if (j < visible(i) && is_special(j)) marks.push_back(j);
    }
    for (const Dataset::Link& link : links) {
      if (link.query == i && std::ranges::find(named, link.key) == named.end()) named.push_back(link.key);
    }
    add(same_token, i, same);
    add(duplicate_token, i, earlier);
    add(induction, i, after);
    add(special, i, marks);
    add(task_target, i, named);
  }
}

void ScoreTargets::add(Score score, std::int64_t query, std::span<const std::int64_t> keys) {
  if (keys.empty()) return;
  Sum& sum = sums_[score];
  const std::size_t before = sum.cells.size();
  for (const std::int64_t key : keys)
    if (key < visible(query)) sum.cells.push_back({query, key});
  const std::size_t seen = sum.cells.size() - before;
  sum.eligible += 1;
  sum.chance += static_cast<double>(seen) / static_cast<double>(visible(query));
  sum.attainable += seen > 0 ? 1 : 0;
}

HeadScorer::HeadScorer(std::int64_t length, bool causal)
    : length_(length),
      causal_(causal),
      sequences_(at(length + 1)),
      offset_(at(2 * length - 1)),
      position_(at(length)),
      full_(at(length * length)) {}

void HeadScorer::add(const ScoreTargets& targets, std::span<const double> weights) {
  require<ShapeError>(
      targets.length() <= length_ && targets.causal() == causal_,
      "head scorer: a sequence of {} tokens with causal {}, for lengths up to {} with causal {}",
      targets.length(), targets.causal(), length_, causal_);
  require<ShapeError>(std::ssize(weights) == length_ * length_, "head scorer: {} weights, not {} x {}",
                      weights.size(), length_, length_);
  for (std::int64_t i = 0; i < targets.length(); ++i) add_row(targets, i, weights.data() + i * length_);
  sequences_[at(targets.length())] += 1;
  for (std::size_t s = 0; s < content_.size(); ++s) {
    const ScoreTargets::Sum& sum = targets[static_cast<ScoreTargets::Score>(s)];
    for (const auto& [query, key] : sum.cells) content_[s].value += weights[at(query * length_ + key)];
    content_[s].chance += sum.chance;
    content_[s].attainable += sum.attainable;
    content_[s].eligible += static_cast<double>(sum.eligible);
  }
}

void HeadScorer::add_row(const ScoreTargets& targets, std::int64_t query, const double* row) {
  const std::int64_t visible = targets.visible(query);
  double* offset = offset_.data() + (length_ - 1 - query);
  double total = 0, entropy = 0;
  for (std::int64_t j = 0; j < visible; ++j) {
    total += row[j];
    offset[j] += row[j];
    position_[at(j)] += row[j];
    if (row[j] > 0) entropy -= row[j] * std::log(row[j]);
  }
  require<NumericError>(
      std::abs(total - 1) <= kRowError,
      "head scorer: the weights of query {} on the {} keys that it sees add up to {}, not 1: take "
      "them after the mask and the softmax, before dropout",
      query, visible, total);
  if (visible > 1) {
    entropy_ += entropy / std::log(static_cast<double>(visible));
    ++entropy_queries_;
  }
  const std::int64_t mirrored = targets.length() - 1 - query;
  if (mirrored < visible) mirror_ += row[mirrored];
  if (targets.length() != length_) return;
  double* full = full_.data() + query * length_;
  for (std::int64_t j = 0; j < visible; ++j) {
    const double excess = row[j] - 1 / static_cast<double>(visible);
    full[j] += row[j];
    full_squares_ += excess * excess;
  }
}

std::vector<double> HeadScorer::mean_weights() const {
  std::vector<double> mean = full_;
  for (double& w : mean) w /= static_cast<double>(std::max<std::int64_t>(1, sequences_.back()));
  return mean;
}

HeadScore HeadScorer::Mean::score(std::string_view name) const {
  HeadScore score{.name = name, .value = kNaN, .chance = kNaN, .attainable = kNaN};
  if (eligible == 0) return score;
  score.value = value / eligible;
  score.chance = chance / eligible;
  score.attainable = attainable / eligible;
  score.eligible = std::llround(eligible);
  return score;
}

// What follows from positions alone.
struct HeadScorer::Positions {
  std::vector<Mean> offset;    // of k at k + T - 1
  std::vector<Mean> position;  // of k
  Mean mirror, distance, signed_distance;
};

HeadScorer::Positions HeadScorer::positions() const {
  Positions out;
  out.offset.resize(offset_.size());
  out.position.resize(position_.size());
  for (std::size_t k = 0; k < offset_.size(); ++k) {
    const double distance = static_cast<double>(k) - static_cast<double>(length_ - 1);
    out.offset[k].value = offset_[k];
    out.distance.value += offset_[k] * std::abs(distance);
    out.signed_distance.value += offset_[k] * distance;
  }
  for (std::size_t k = 0; k < position_.size(); ++k) out.position[k].value = position_[k];
  out.mirror.value = mirror_;
  for (std::int64_t n = 1; n <= length_; ++n) {
    if (sequences_[at(n)] == 0) continue;
    const auto count = static_cast<double>(sequences_[at(n)]);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t visible = causal_ ? i + 1 : n;
      const double uniform = count / static_cast<double>(visible);
      const auto target = [&](Mean& mean, std::int64_t key) {
        mean.eligible += count;
        if (key >= visible) return;
        mean.chance += uniform;
        mean.attainable += count;
      };
      for (std::int64_t j = 0; j < n; ++j) target(out.offset[at(j - i + length_ - 1)], j);
      for (std::int64_t k = 0; k < length_; ++k) target(out.position[at(k)], k);
      target(out.mirror, n - 1 - i);
      for (std::int64_t j = 0; j < visible; ++j) {
        out.distance.chance += uniform * static_cast<double>(std::abs(j - i));
        out.signed_distance.chance += uniform * static_cast<double>(j - i);
      }
      out.distance.attainable += count * static_cast<double>(std::max(i, visible - 1 - i));
      out.signed_distance.attainable += count * static_cast<double>(visible - 1 - i);
      out.distance.eligible += count;
      out.signed_distance.eligible += count;
    }
  }
  return out;
}

HeadScore HeadScorer::positional_share() const {
  HeadScore score{.name = "positional_share", .value = kNaN, .chance = kNaN, .attainable = kNaN};
  const auto count = static_cast<double>(sequences_.back());
  const double queries = count * static_cast<double>(length_);
  if (count < 2 || full_squares_ <= kUniform * queries) return score;
  double squares = 0;
  for (std::int64_t i = 0; i < length_; ++i) {
    const std::int64_t visible = causal_ ? i + 1 : length_;
    for (std::int64_t j = 0; j < visible; ++j) {
      const double excess = full_[at(i * length_ + j)] / count - 1 / static_cast<double>(visible);
      squares += excess * excess;
    }
  }
  score.value = count * squares / full_squares_;
  score.attainable = 1;
  score.eligible = std::llround(queries);
  return score;
}

namespace {

// The k whose value is furthest above chance; at[0] is k = first.
template <class Means, class Allowed>
HeadScore best_of(std::string_view name, const Means& means, std::int64_t first, const Allowed& allowed) {
  HeadScore best{.name = name, .value = kNaN, .chance = kNaN, .attainable = kNaN};
  for (std::size_t k = 0; k < means.size(); ++k) {
    HeadScore score = means[k].score(name);
    if (score.eligible == 0 || score.attainable == 0 || !allowed(score)) continue;
    if (best.eligible > 0 && score.value - score.chance <= best.value - best.chance) continue;
    best = score;
    best.at = first + static_cast<std::int64_t>(k);
  }
  return best;
}

}  // namespace

std::vector<HeadScore> HeadScorer::scores() const {
  using enum ScoreTargets::Score;
  const Positions p = positions();
  const auto offset = [&](std::string_view name, std::int64_t k) {
    const bool none = std::abs(k) >= length_ || (causal_ && k > 0);
    return (none ? Mean() : p.offset[at(k + length_ - 1)]).score(name);
  };
  const auto queries = static_cast<double>(entropy_queries_);
  const Mean entropy{.value = entropy_, .chance = queries, .attainable = queries, .eligible = queries};
  const std::int64_t all = std::llround(p.mirror.eligible);
  // A key at the start is seen by every query.
  return {entropy.score("entropy"),
          p.distance.score("distance"),
          p.signed_distance.score("signed_distance"),
          offset("self", 0),
          offset("previous", -1),
          offset("next", 1),
          p.position[0].score("first"),
          content_[special].score("special"),
          positional_share(),
          offset("previous_token", -1),
          offset("next_token", 1),
          p.mirror.score("mirror"),
          best_of("offset", p.offset, 1 - length_,
                  [&](const HeadScore& score) { return 2 * score.eligible >= all; }),
          content_[same_token].score("same_token"),
          content_[duplicate_token].score("duplicate_token"),
          content_[induction].score("induction"),
          best_of("absolute_position", p.position, 0, [](const HeadScore&) { return true; }),
          content_[task_target].score("task_target")};
}

const HeadScore& find_score(std::span<const HeadScore> scores, std::string_view name) {
  const auto found = std::ranges::find(scores, name, &HeadScore::name);
  require<Error>(found != scores.end(), "head scores: none is called {}", name);
  return *found;
}

double strength(double value, double chance, double attainable) {
  return attainable > chance && !std::isnan(value) ? (value - chance) / (attainable - chance) : 0;
}

void set_at_init(std::span<HeadScore> scores, std::span<const HeadScore> initial) {
  for (HeadScore& score : scores) score.at_init = find_score(initial, score.name).value;
}

nlohmann::ordered_json to_json(std::span<const HeadScore> scores) {
  const auto number = [](double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  auto out = nlohmann::ordered_json::object();
  for (const HeadScore& score : scores) {
    nlohmann::ordered_json& entry = out[std::string(score.name)];
    entry = {{"value", number(score.value)},
             {"chance", number(score.chance)},
             {"at_init", number(score.at_init)},
             {"attainable", number(score.attainable)},
             {"eligible", score.eligible}};
    if (score.at) entry["at"] = *score.at;
  }
  return out;
}

}  // namespace thimble
