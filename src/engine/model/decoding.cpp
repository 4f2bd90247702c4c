#include "thimble/engine/decoding.h"

#include <algorithm>
#include <cmath>

#include "engine/core/portable_math.h"
#include "thimble/engine/error.h"

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
  double log_probability;
};

// Returns the `beams` most probable continuations of the hypotheses, most probable first.
std::vector<Continuation> continuations(ConstMatrixView logits, const std::vector<Hypothesis>& hypotheses,
                                        std::int64_t beams) {
  std::vector<Continuation> all;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const std::vector<double> log_p = log_probabilities(logits, static_cast<std::int64_t>(i));
    for (std::size_t token = 0; token < log_p.size(); ++token)
      all.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(token),
                     hypotheses[i].log_probability + log_p[token]});
  }
  const auto kept = std::min<std::ptrdiff_t>(beams, std::ssize(all));
  std::ranges::partial_sort(all, all.begin() + kept, std::ranges::greater(), &Continuation::log_probability);
  all.resize(static_cast<std::size_t>(kept));
  return all;
}

}  // namespace

std::vector<Hypothesis> greedy_decode(DecoderState& state, std::int64_t count,
                                      const DecodingOptions& options) {
  std::vector<Hypothesis> hypotheses(static_cast<std::size_t>(count));
  std::vector<std::int32_t> last(hypotheses.size(), options.bos_token);
  std::vector<bool> ended(hypotheses.size(), false);
  for (std::int64_t step = 0; step < options.max_tokens && std::ranges::count(ended, false) > 0; ++step) {
    const Tensor logits = state.next(last);
    for (std::size_t i = 0; i < hypotheses.size(); ++i) {
      if (ended[i]) continue;
      const std::vector<double> log_p = log_probabilities(logits.matrix(), static_cast<std::int64_t>(i));
      const auto best = std::ranges::max_element(log_p);
      last[i] = static_cast<std::int32_t>(best - log_p.begin());
      hypotheses[i].log_probability += *best;
      ended[i] = hypotheses[i].finished = last[i] == options.eos_token;
      if (!ended[i]) hypotheses[i].tokens.push_back(last[i]);
    }
    options.on_token();
  }
  return hypotheses;
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
      hypothesis.log_probability = c.log_probability;
      hypothesis.finished = c.token == options.eos_token;
      if (c.token != options.eos_token) hypothesis.tokens.push_back(c.token);
      if (c.token == options.eos_token || step == options.max_tokens) {
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
    options.on_token();
    open = std::move(longer);
  }
  return ended;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
