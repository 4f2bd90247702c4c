// Compares configs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thimble/train/config.h"

namespace thimble {

// A value that two configs do not share.
struct Difference {
  std::string key;   // its dotted path
  std::string text;  // "train.steps: 100 in the run, 200 in new.yaml"
  bool may_change;   // whether training can resume with the other value
};

// Returns the values that differ, in the order of the field lists. Omits keys that only one of their tasks
// has, as task.name differs then.
std::vector<Difference> differences(const Config& a, const Config& b, std::string_view name_a,
                                    std::string_view name_b);

// Returns a line "train.seed: 42" for each value that may not change while a run is resumed, see Field::newer.
std::string fixed_values(const Config&);
// Returns the values for a hash, see Field::newer.
Json hashed_values(const Config&);

}  // namespace thimble
