#include <algorithm>

#include "engine/core/portable_math.h"
#include "thimble/engine/error.h"
#include "thimble/train/task.h"

namespace thimble::tasks::histogram {
namespace {

void check(const TaskConfig& config) {
  require<DataError>(config.symbols >= 2,
                     "task histogram: symbols 1: must be at least 2, or every count would be the length");
}

std::vector<std::string> tokens(const TaskConfig& config) {
  std::vector<std::string> names = letter_tokens(config);
  for (std::int64_t count = 1; count <= config.length; ++count) names.push_back(std::to_string(count));
  return names;
}

void set_target(const TaskConfig& config, Example& example) {
  example.target.clear();
  for (const std::int32_t token : example.input)
    example.target.push_back(
        static_cast<std::int32_t>(config.symbols - 1 + std::ranges::count(example.input, token)));
}

// Of a token, Binomial(n-1, 1/symbols) others are equal, and an input of length n has n answers:
// P(count c) = sum_n n C(n-1, c-1) p^(c-1) (1-p)^(n-c) / sum_n n.
double chance(const TaskConfig& config) {
  const auto longest = static_cast<std::size_t>(config.length);
  std::vector<double> log_factorial(longest + 1, 0), share(longest + 1, 0);
  for (std::size_t k = 1; k <= longest; ++k)
    log_factorial[k] = log_factorial[k - 1] + portable::log(static_cast<double>(k));
  const double p = one_in_symbols(config), log_p = portable::log(p), log_q = portable::log(1 - p);
  double asked = 0;
  for (auto n = static_cast<std::size_t>(config.shortest()); n <= longest; ++n) {
    for (std::size_t c = 1; c <= n; ++c)
      share[c] += static_cast<double>(n) *
                  portable::exp(log_factorial[n - 1] - log_factorial[c - 1] - log_factorial[n - c] +
                                static_cast<double>(c - 1) * log_p + static_cast<double>(n - c) * log_q);
    asked += static_cast<double>(n);
  }
  return std::ranges::max(share) / asked;
}

// All positions of the same token, including this one.
void relevant(const TaskConfig&, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  for (std::size_t j = 0; j < example.input.size(); ++j)
    if (example.input[j] == example.input[i]) keys.push_back({static_cast<std::int32_t>(j)});
}

}  // namespace

Task task() {
  Task task = symbol_task<set_target>();
  task.summary = "how often each token occurs in the input";
  task.definition =
      "Inputs are `length` (or min_length to length) independent uniform symbols out of "
      "`symbols`; answer i is how often input i occurs in the whole input, itself included, "
      "from 1 to length. It is `hist` of RASP (Weiss, Goldberg and Yahav, \"Thinking Like "
      "Transformers\", ICML 2021).";
  task.check = check;
  task.tokens = tokens;
  task.chance = chance;
  task.relevant = relevant;
  task.kinds = {"equal token"};
  task.candidates = all_positions;
  return task;
}

}  // namespace thimble::tasks::histogram
