// The patterns that a head can take up, and which of them it shows.
#pragma once

#include <optional>
#include <string_view>

#include "thimble/inspect/timeline.h"

namespace thimble {

struct Pattern {
  std::string_view score, noun;
};

// Of equally strong ones the first counts: with a causal mask, duplicate tokens are the same tokens.
inline constexpr Pattern kPatterns[] = {
    {"mirror", "a mirror head"},
    {"induction", "an induction head"},
    {"previous_token", "a previous-token head"},
    {"next_token", "a next-token head"},
    {"duplicate_token", "a duplicate-token head"},
    {"same_token", "a same-token head"},
    {"self", "a head that looks at its own position"},
    {"task_target", "a head that looks at what the task names"},
};

// (value - chance) / (attainable - chance); nothing when the score is not known.
std::optional<double> strength(const WatchedStep&, std::size_t head, std::string_view score);

// The strongest pattern, but the task's own only when it is more than kAmbiguous stronger than all others;
// empty when none is known.
std::string_view best_pattern(const WatchedStep&, std::size_t head);

}  // namespace thimble
