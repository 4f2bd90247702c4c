#include "thimble/train/task.h"

#include <algorithm>
#include <limits>

#include "engine/core/portable_math.h"
#include "thimble/engine/error.h"

namespace thimble {

std::int64_t SampleRng::below(std::int64_t n) {
  const std::uint32_t half = next_ % 2 * 2;
  if (half == 0) words_ = random_.words(index_, next_ / 2, lane_);
  ++next_;
  // The high 64 bits of (a 64-bit word) * n, without a 128-bit type.
  const auto factor = static_cast<std::uint64_t>(n);
  const std::uint64_t low = words_[half] * factor;
  return static_cast<std::int64_t>((words_[half + 1] * factor + (low >> 32)) >> 32);
}

Tokenization TaskConfig::input_tokens() const {
  return find_task(name).predicts_next ? text.tokens : options.input_tokens.joined();
}

Tokenization TaskConfig::target_tokens() const {
  return find_task(name).predicts_next ? text.tokens : options.target_tokens.joined();
}

const Task& checked_task(const TaskConfig& config) {
  const Task& task = find_task(config.name);
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  const auto check = [&](std::string_view key, std::int64_t value, std::int64_t low, std::int64_t high) {
    const bool reads = std::ranges::find(task.keys, key) != task.keys.end();
    require<DataError>(!reads || (value >= low && value <= high), "task {}: {} {}: must be from {} to {}",
                       config.name, key, value, low, high);
  };
  check("symbols", config.symbols, 1, kMax);
  check("length", config.length, 1, kMax);
  check("min_length", config.min_length, 0, config.length);
  check("offset", config.offset, 1, kMax);
  check("pairs", config.pairs, 1, kMax);
  check("depth", config.depth, 1, kMax);
  if (task.check != nullptr) task.check(config);
  return task;
}

std::vector<std::int32_t> special_tokens(const TaskConfig& config) {
  const Task& task = checked_task(config);
  if (task.special.empty()) return {};
  const std::vector<std::string> names = task.tokens(config);
  std::vector<std::int32_t> found;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::ranges::find(task.special, names[i]) != task.special.end())
      found.push_back(static_cast<std::int32_t>(i));
  return found;
}

namespace tasks {

std::int64_t sample_length(const TaskConfig& config, SampleRng& rng) {
  const std::int64_t shortest = config.shortest();
  return shortest < config.length ? shortest + rng.below(config.length - shortest + 1) : shortest;
}

void sample_symbols(const TaskConfig& config, SampleRng& rng, std::vector<std::int32_t>& out) {
  out.resize(static_cast<std::size_t>(sample_length(config, rng)));
  for (std::int32_t& token : out) token = static_cast<std::int32_t>(rng.below(config.symbols));
}

void vary_symbols(const TaskConfig& config, SampleRng& rng, std::vector<std::int32_t>& out) {
  const auto [first, last] = std::minmax({rng.below(config.symbols), rng.below(config.symbols)});
  out.resize(static_cast<std::size_t>(sample_length(config, rng)));
  for (std::int32_t& token : out) token = static_cast<std::int32_t>(first + rng.below(last - first + 1));
}

void all_positions(const TaskConfig&, const Example& example, std::size_t, std::vector<std::int32_t>& keys) {
  for (std::size_t j = 0; j < example.input.size(); ++j) keys.push_back(static_cast<std::int32_t>(j));
}

void answer_positions(const TaskConfig&, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  for (std::size_t j = 0; j < example.input.size(); ++j)
    if (example.input[j] == example.target[i]) keys.push_back({static_cast<std::int32_t>(j)});
}

double count_symbol_sequences(const TaskConfig& config) {
  double count = 0;
  for (std::int64_t n = config.shortest(); n <= config.length; ++n)
    count += portable::power(static_cast<double>(config.symbols), n);
  return count;
}

std::vector<std::string> number_tokens(const TaskConfig& config) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < config.symbols; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<std::string> letter_tokens(const TaskConfig& config) {
  std::vector<std::string> names = number_tokens(config);
  for (std::size_t i = 0; i < names.size(); ++i)
    names[i] = names.size() <= 26 ? std::string(1, static_cast<char>('a' + i)) : "s" + names[i];
  return names;
}

std::vector<std::string> opening_tokens(const TaskConfig& config) {
  std::vector<std::string> names = number_tokens(config);
  for (std::size_t i = 0; i < names.size(); ++i)
    names[i] = names.size() <= 4 ? std::string(1, "([{<"[i]) : "(" + names[i];
  return names;
}

ExampleSize one_per_position(const TaskConfig& config) { return {config.length, config.length}; }
ExampleSize one_per_sequence(const TaskConfig& config) { return {config.length, 1}; }
double one_in_symbols(const TaskConfig& config) { return 1 / static_cast<double>(config.symbols); }
double one_half(const TaskConfig&) { return 0.5; }

}  // namespace tasks

}  // namespace thimble
