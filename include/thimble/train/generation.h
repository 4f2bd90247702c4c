// What models generate: how, and the outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/engine/decoding.h"

namespace thimble {

// How outputs are generated: by greedy decoding, by a beam search of `beams` > 1, or by drawing `samples` > 0.
struct Generation {
  std::int64_t beams = 1, samples = 0;
  Sampling sampling{};
  std::int64_t tokens = 0;  // the most of an output, its end included; 0: as the longest target of the task
  // Called with the next part of the first output as it is generated; parts of characters are kept back.
  std::function<void(std::string_view)> on_text{};
};

struct GeneratedSequence {
  std::vector<std::string> tokens;
  double log_probability;
  std::vector<double> log_probabilities;  // of each token, and of the end if it ended
  bool finished;                          // false: cut at the most tokens
  std::string text{};                     // the tokens joined as the targets of the task are written
  std::vector<std::int32_t> bytes{};      // of tokens that are bytes, as token_bytes() returns them
};

// The documents that train.sample_every draws; of a stream it draws one window.
inline constexpr std::int64_t kSampledDocuments = 5;

}  // namespace thimble
