#include <algorithm>

#include "thimble/engine/error.h"
#include "thimble/train/task.h"

namespace thimble::tasks::dyck_match {
namespace {

void check(const TaskConfig& config) {
  for (const auto& [key, value] :
       {std::pair{"length", config.length}, std::pair{"min_length", config.min_length}})
    require<DataError>(value % 2 == 0, "task dyck_match: {} {}: must be even, as brackets come in pairs", key,
                       value);
}

std::vector<std::string> tokens(const TaskConfig& config) {
  std::vector<std::string> names = opening_tokens(config);
  names.emplace_back(")");
  return names;
}

// Draws a word in which, where both are possible, a bracket has the direction of the one before it with
// probability same / 4.
void draw(const TaskConfig& config, SampleRng& rng, std::int64_t same, Example& example) {
  const std::int64_t n = config.shortest() + 2 * rng.below((config.length - config.shortest()) / 2 + 1);
  auto& [input, target, attends] = example;
  input.resize(static_cast<std::size_t>(n));
  target.resize(static_cast<std::size_t>(n));
  constexpr std::int32_t kNone = -1;
  std::int32_t innermost = kNone;  // open bracket; the target of an open bracket holds the one around it
  bool opens = true;
  for (std::int64_t i = 0, height = 0; i < n; ++i) {
    const bool must_open = height == 0, must_close = height == config.depth || height == n - i;
    const auto here = static_cast<std::size_t>(i);
    opens = must_open || (!must_close && rng.below(4) < (opens ? same : 4 - same));
    if (opens) {
      input[here] = static_cast<std::int32_t>(rng.below(config.symbols));
      target[here] = innermost;
      innermost = static_cast<std::int32_t>(i);
      ++height;
    } else {
      const auto opening = static_cast<std::size_t>(innermost);
      input[here] = static_cast<std::int32_t>(config.symbols);
      target[here] = input[opening];
      innermost = target[opening];
      target[opening] = kIgnore;
      --height;
    }
  }
}

void sample(const TaskConfig& config, SampleRng& rng, Example& example) { draw(config, rng, 2, example); }

// Nests deeper, so that fewer brackets close the nearest opening one.
void vary(const TaskConfig& config, SampleRng& rng, Example& example) { draw(config, rng, 3, example); }

// Counts walks of n steps up or down between 0 and `depth` that end at 0, each with symbols^(n/2) words.
double distinct_inputs(const TaskConfig& config) {
  const auto depth = static_cast<std::size_t>(std::min(config.depth, config.length / 2));
  std::vector<double> words(depth + 3, 0), before;  // words[h + 1]: prefixes with h open brackets
  words[1] = 1;
  double count = 0;
  for (std::int64_t n = 1; n <= config.length; ++n) {
    before = words;
    for (std::size_t h = 0; h <= depth; ++h)
      words[h + 1] = static_cast<double>(config.symbols) * before[h] + before[h + 2];
    if (n >= config.shortest() && n % 2 == 0) count += words[1];
  }
  return count;
}

// Returns the position of the opening bracket of a closing one, -1 if there is none.
std::int32_t opening_of(const TaskConfig& config, std::span<const std::int32_t> input, std::size_t closing) {
  auto i = static_cast<std::int32_t>(closing) - 1;
  for (int open = 1; i >= 0; --i)
    if ((open += input[static_cast<std::size_t>(i)] == config.symbols ? 1 : -1) == 0) break;
  return i;
}

// A closing bracket asks for its opening one.
bool knowable(const TaskConfig& config, std::span<const std::int32_t> input, std::size_t i) {
  return input[i] == config.symbols && opening_of(config, input, i) >= 0;
}

void relevant(const TaskConfig& config, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  if (example.target[i] != kIgnore) keys.push_back({opening_of(config, example.input, i)});
}

// The opening brackets before the answer.
void candidates(const TaskConfig& config, const Example& example, std::size_t i,
                std::vector<std::int32_t>& keys) {
  for (std::size_t j = 0; j < i; ++j)
    if (example.input[j] != config.symbols) keys.push_back(static_cast<std::int32_t>(j));
}

}  // namespace

Task task() {
  return {.summary = "which kind of bracket each closing one closes",
          .definition =
              "Inputs are well-nested words of `length` (or an even number from min_length to length) "
              "brackets, nested at most `depth` deep: `symbols` kinds of opening brackets, uniform and "
              "independent, and a single closing one for all of them. At each closing bracket the answer "
              "is the opening bracket that it closes; opening brackets have no answer. Where both are "
              "possible, opening and closing are equally likely. The words are the Dyck languages of "
              "Chomsky and Schuetzenberger, \"The Algebraic Theory of Context-Free Languages\" (1963), "
              "with bounded depth as in Hewitt et al., \"RNNs can generate bounded hierarchical languages "
              "with optimal memory\" (EMNLP 2020); transformers need two layers for them (Yao et al., "
              "\"Self-Attention Networks Can Process Bounded Hierarchical Languages\", ACL 2021).",
          .keys = {"symbols", "length", "min_length", "depth"},
          .sparse = true,
          .check = check,
          .tokens = tokens,
          .size = one_per_position,
          .sample = sample,
          .distinct_inputs = distinct_inputs,
          .chance = one_in_symbols,
          .knowable = knowable,
          .relevant = relevant,
          .kinds = {"opening bracket"},
          .candidates = candidates,
          .vary = vary};
}

}  // namespace thimble::tasks::dyck_match
