#include <numeric>

#include "thimble/train/task.h"

namespace thimble::tasks::parity {
namespace {

std::vector<std::string> tokens(const TaskConfig&) { return {"0", "1"}; }

// Draws bits that are 0 with probability zeros / kParts.
constexpr std::int64_t kParts = 8;
void draw(const TaskConfig& config, SampleRng& rng, std::int64_t zeros, Example& example) {
  example.input.resize(static_cast<std::size_t>(sample_length(config, rng)));
  for (std::int32_t& bit : example.input) bit = rng.below(kParts) < zeros ? 0 : 1;
  example.target.assign(1, std::accumulate(example.input.begin(), example.input.end(), 0) % 2);
}

void sample(const TaskConfig& config, SampleRng& rng, Example& example) {
  draw(config, rng, kParts / 2, example);
}

void vary(const TaskConfig& config, SampleRng& rng, Example& example) {
  draw(config, rng, rng.below(kParts + 1), example);
}

double distinct_inputs(const TaskConfig& config) {
  return count_symbol_sequences({.symbols = 2, .length = config.length, .min_length = config.min_length});
}

// All positions, as flipping any bit flips the answer.
void relevant(const TaskConfig&, const Example& example, std::size_t, std::vector<Relevant>& keys) {
  for (std::size_t j = 0; j < example.input.size(); ++j) keys.push_back({static_cast<std::int32_t>(j)});
}

}  // namespace

Task task() {
  return {.summary = "whether the number of ones is odd",
          .definition =
              "Inputs are `length` (or min_length to length) independent uniform bits; the one answer is 1 "
              "if an odd number of them are 1, else 0. The answer depends on every single bit, which soft "
              "attention cannot compute as inputs grow (Hahn, \"Theoretical Limitations of Self-Attention "
              "in Neural Sequence Models\", TACL 2020; Bhattamishra, Ahuja and Goyal, \"On the Ability and "
              "Limitations of Transformers to Recognize Formal Languages\", EMNLP 2020).",
          .keys = {"length", "min_length"},
          .tokens = tokens,
          .size = one_per_sequence,
          .sample = sample,
          .distinct_inputs = distinct_inputs,
          .chance = one_half,
          .relevant = relevant,
          .kinds = {"bit"},
          .vary = vary};
}

}  // namespace thimble::tasks::parity
