#include "thimble/engine/decoding.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "engine/core/portable_math.h"
#include "thimble/engine/error.h"
#include "thimble/engine/random.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

std::vector<double> log_probabilities(ConstMatrixView logits, std::int64_t row) {
  const std::span<const Real> z(logits.row(row), static_cast<std::size_t>(logits.cols));
  for (const Real x : z)
    require<NumericError>(std::isfinite(x),
                          "decoding: a logit is {}; the weights are too large: use an earlier checkpoint", x);
  const auto largest = static_cast<double>(*std::ranges::max_element(z));
  double sum = 0;
  for (const Real x : z) sum += portable::exp(static_cast<double>(x) - largest);
  std::vector<double> result;
  for (const Real x : z) result.push_back(static_cast<double>(x) - largest - portable::log(sum));
  return result;
}

namespace {

// A hypothesis with one more token.
struct Continuation {
  std::int32_t hypothesis, token;
  double log_probability;  // of the token
  double sum;              // with its hypothesis
};

// Returns the `beams` most probable continuations of the hypotheses, most probable first.
std::vector<Continuation> continuations(ConstMatrixView logits, const std::vector<Hypothesis>& hypotheses,
                                        std::int64_t beams) {
  std::vector<Continuation> all;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const std::vector<double> log_p = log_probabilities(logits, static_cast<std::int64_t>(i));
    for (std::size_t token = 0; token < log_p.size(); ++token)
      all.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(token), log_p[token],
                     hypotheses[i].log_probability + log_p[token]});
  }
  const auto kept = std::min<std::ptrdiff_t>(beams, std::ssize(all));
  std::ranges::partial_sort(all, all.begin() + kept, std::ranges::greater(), &Continuation::sum);
  all.resize(static_cast<std::size_t>(kept));
  return all;
}

// Appends a token with its log probability, or the end.
void append(Hypothesis& hypothesis, std::int32_t token, double log_p, const DecodingOptions& options) {
  hypothesis.log_probability += log_p;
  hypothesis.log_probabilities.push_back(log_p);
  hypothesis.finished = token == options.eos_token;
  if (!hypothesis.finished) hypothesis.tokens.push_back(token);
}

// Continues each of `count` hypotheses with choose(log probabilities (V), hypothesis, step) until it ends.
template <class Choose>
std::vector<Hypothesis> decode(DecoderState& state, std::int64_t count, const DecodingOptions& options,
                               const Choose& choose) {
  std::vector<Hypothesis> hypotheses(static_cast<std::size_t>(count));
  std::vector<std::int32_t> last(hypotheses.size(), options.bos_token);
  const auto open = [&] {
    return std::ranges::any_of(hypotheses, std::logical_not(), &Hypothesis::finished);
  };
  for (std::int64_t step = 0; step < options.max_tokens && open(); ++step) {
    const Tensor logits = state.next(last);
    for (std::size_t i = 0; i < hypotheses.size(); ++i) {
      if (hypotheses[i].finished) continue;
      const std::vector<double> log_p = log_probabilities(logits.matrix(), static_cast<std::int64_t>(i));
      last[i] = choose(log_p, i, step);
      append(hypotheses[i], last[i], log_p[static_cast<std::size_t>(last[i])], options);
    }
    options.on_token(hypotheses);
  }
  return hypotheses;
}

// Returns the token that a number u, uniform in [0, 1), chooses: the first whose probability and that of the
// tokens before it have a sum above u.
std::int32_t draw(const std::vector<double>& log_p, const Sampling& how, double u) {
  std::vector<std::int32_t> tokens(log_p.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const double largest = std::ranges::max(log_p);
  const auto weight = [&](std::int32_t token) {
    return portable::exp((log_p[static_cast<std::size_t>(token)] - largest) / how.temperature);
  };
  const auto total = [&] {
    double sum = 0;
    for (const std::int32_t token : tokens) sum += weight(token);
    return sum;
  };
  if (how.top_k > 0 || how.top_p < 1) {
    std::ranges::stable_sort(tokens, std::ranges::greater(),
                             [&](std::int32_t token) { return log_p[static_cast<std::size_t>(token)]; });
    if (how.top_k > 0 && how.top_k < std::ssize(tokens)) tokens.resize(static_cast<std::size_t>(how.top_k));
    const double wanted = how.top_p * total();
    std::size_t kept = 0;
    for (double sum = 0; kept < tokens.size() && sum < wanted; ++kept) sum += weight(tokens[kept]);
    tokens.resize(kept);
  }
  double left = u * total();
  std::int32_t possible = tokens.front();  // where rounding leaves something of the last
  for (const std::int32_t token : tokens) {
    const double w = weight(token);
    if (w > 0) possible = token;
    if ((left -= w) < 0) return token;
  }
  return possible;
}

}  // namespace

std::vector<Hypothesis> greedy_decode(DecoderState& state, std::int64_t count,
                                      const DecodingOptions& options) {
  return decode(state, count, options, [](const std::vector<double>& log_p, std::size_t, std::int64_t) {
    return static_cast<std::int32_t>(std::ranges::max_element(log_p) - log_p.begin());
  });
}

std::vector<Hypothesis> sample(DecoderState& state, std::int64_t count, const DecodingOptions& options,
                               const Sampling& how) {
  require<Error>(how.temperature > 0 && how.top_k >= 0 && how.top_p > 0 && how.top_p <= 1,
                 "sampling: temperature {}, top_k {}, top_p {}: must be above 0, at least 0, and in (0, 1]",
                 how.temperature, how.top_k, how.top_p);
  const Random random(how.seed, Stream::sample);
  return decode(state, count, options,
                [&](const std::vector<double>& log_p, std::size_t i, std::int64_t step) {
                  return draw(log_p, how, random.uniform(i, static_cast<std::uint32_t>(step)));
                });
}

std::vector<Hypothesis> beam_search(DecoderState& state, std::int64_t beams, const DecodingOptions& options) {
  require<ShapeError>(beams >= 1, "beam search: beams ({}) must be at least 1", beams);
  std::vector<Hypothesis> open(1), ended;
  std::vector<std::int32_t> last{options.bos_token};
  for (std::int64_t step = 1; !open.empty(); ++step) {
    const Tensor logits = state.next(last);
    std::vector<Hypothesis> longer;
    std::vector<std::int32_t> from;
    last.clear();
    for (const Continuation& c : continuations(logits.matrix(), open, beams)) {
      Hypothesis hypothesis = open[static_cast<std::size_t>(c.hypothesis)];
      append(hypothesis, c.token, c.log_probability, options);
      if (hypothesis.finished || step == options.max_tokens) {
        ended.push_back(std::move(hypothesis));
        continue;
      }
      longer.push_back(std::move(hypothesis));
      from.push_back(c.hypothesis);
      last.push_back(c.token);
    }
    std::ranges::stable_sort(ended, std::ranges::greater(), &Hypothesis::log_probability);
    ended.resize(std::min(ended.size(), static_cast<std::size_t>(beams)));
    // The probability of a hypothesis never increases.
    const auto hopeless = [&](const Hypothesis& a) {
      return std::ssize(ended) == beams && a.log_probability <= ended.back().log_probability;
    };
    if (std::ranges::all_of(longer, hopeless)) break;
    state.reorder(from);
    open = std::move(longer);
    options.on_token(open);
  }
  return ended;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
