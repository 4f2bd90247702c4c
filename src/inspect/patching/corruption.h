// Test sequences and what corrupts them; see PairChoice::corruption.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/patching/pairs.h"

namespace thimble {

// Returns K of "token K"; nothing for another corruption.
std::optional<std::int64_t> replaced_position(const std::string& corruption);

inline namespace THIMBLE_PRECISION {

// Returns at most `count` of the evaluator's selected sequences, in order, each with its corrupted input, which depends on the
// seed; those that cannot be corrupted that way are left out. Labels are those of the clean input, but for `resample`, and
// `target`, where exchanged answers are exchanged and all others as they were. Throws ConfigError when there is no such
// corruption, and DataError when no sequence can be corrupted.
std::vector<ExamplePair> draw_examples(const Evaluator& evaluator, const std::string& corruption,
                                       std::int64_t count);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
