// Examples of a task and what counts among them, for tests.
#pragma once

#include <map>
#include <vector>

#include "thimble/train/task.h"

namespace thimble::samples {

using Tokens = std::vector<std::int32_t>;

// The first examples of a seed.
inline std::vector<Example> draw(const TaskConfig& config, std::uint64_t count) {
  const Task& task = checked_task(config);
  std::vector<Example> out(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    SampleRng rng(Random(7, Stream::data), i, 0);
    task.sample(config, rng, out[i]);
  }
  return out;
}

inline Tokens relevant(const TaskConfig& config, const Example& example, std::size_t i) {
  std::vector<Relevant> found;
  find_task(config.name).relevant(config, example, i, found);
  Tokens keys;
  for (const Relevant& r : found) keys.push_back(r.key);
  return keys;
}

// The answers there are, with their shares.
inline std::map<std::int32_t, double> answer_shares(const std::vector<Example>& examples) {
  std::map<std::int32_t, double> shares;
  double total = 0;
  for (const Example& example : examples) {
    for (const std::int32_t token : example.target) {
      if (token == kIgnore) continue;
      ++shares[token];
      ++total;
    }
  }
  for (auto& [_, share] : shares) share /= total;
  return shares;
}

}  // namespace thimble::samples
