#include <array>
#include <utility>

#include "thimble/train/task.h"

namespace thimble::tasks::antonyms {
namespace {

// A scale has a name and two opposite ends.
struct Scale {
  std::string_view name, high, low;
};
constexpr Scale kScales[] = {{"temperature", "hot", "cold"}, {"size", "big", "small"},
                             {"speed", "fast", "slow"},      {"age", "old", "young"},
                             {"price", "dear", "cheap"},     {"sound", "loud", "quiet"},
                             {"height", "tall", "short"},    {"depth", "deep", "shallow"}};
constexpr std::int64_t kCount = std::ssize(kScales), kChosen = 4;

// Token ids: names, then high ends, then low ends.
std::int32_t name_token(std::int64_t scale) { return static_cast<std::int32_t>(scale); }
std::int32_t adjective_token(std::int64_t scale, bool low) {
  return static_cast<std::int32_t>(scale + (low ? 2 : 1) * kCount);
}
std::int64_t scale_of(std::int32_t token) { return token % kCount; }

template <class T, std::size_t N>
void shuffle(SampleRng& rng, std::array<T, N>& items) {
  for (std::size_t i = N; i > 1; --i)
    std::swap(items[i - 1], items[static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(i)))]);
}

void sample(const TaskConfig&, SampleRng& rng, Example& example) {
  std::array<std::int64_t, kCount> scales;
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::int64_t>(i);
  shuffle(rng, scales);
  std::array<std::int32_t, kChosen> ends;
  for (std::size_t i = 0; i < ends.size(); ++i) ends[i] = adjective_token(scales[i], rng.below(2) == 1);
  example.input.assign(ends.begin(), ends.end());
  example.target.assign(ends.size(), kIgnore);
  shuffle(rng, ends);
  for (const std::int32_t end : ends) {
    example.input.push_back(name_token(scale_of(end)));
    example.target.push_back(end);
  }
}

// A name asks for its adjective.
bool knowable(const TaskConfig&, std::span<const std::int32_t> input, std::size_t i) {
  return input[i] < kCount;
}

std::vector<std::string> tokens(const TaskConfig&) {
  std::vector<std::string> names;
  for (const auto part : {&Scale::name, &Scale::high, &Scale::low})
    for (const Scale& scale : kScales) names.emplace_back(scale.*part);
  return names;
}

ExampleSize size(const TaskConfig&) { return {2 * kChosen, 2 * kChosen}; }

// Ordered choices of scales, an end of each, and orders of their names.
double distinct_inputs(const TaskConfig&) {
  double ways = 1;
  for (std::int64_t i = 0; i < kChosen; ++i) ways *= static_cast<double>((kCount - i) * 2 * (i + 1));
  return ways;
}

double chance(const TaskConfig&) { return 1 / static_cast<double>(2 * kCount); }

// The positions of all adjectives.
void candidates(const TaskConfig&, const Example&, std::size_t, std::vector<std::int32_t>& keys) {
  for (std::int32_t j = 0; j < kChosen; ++j) keys.push_back(j);
}

}  // namespace

Task task() {
  return {
      .summary = "the adjective that gives the temperature, size, speed, ...",
      .definition =
          "Four adjectives of four different scales, in random order and each either end of its scale, then "
          "the names of the four scales in another random order, such as: cold big slow loud size sound "
          "temperature speed. There are 8 scales. At the name of a scale the answer is its adjective, big at "
          "`size`; other positions have no answer. A name must find both of its opposite adjectives, but the "
          "answers tell them apart. It has no keys.",
      .sparse = true,
      .tokens = tokens,
      .size = size,
      .sample = sample,
      .distinct_inputs = distinct_inputs,
      .chance = chance,
      .knowable = knowable,
      .relevant = answer_positions,
      .kinds = {"adjective"},
      .candidates = candidates,
      .vary = sample};
}

}  // namespace thimble::tasks::antonyms
