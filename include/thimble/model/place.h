// Where the attention heads of a model stand, whatever its numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/model/model_config.h"

namespace thimble {

// One attention. Where a head has a "layer", that is the number of its place; in an encoder both are the
// same.
struct Place {
  std::string name;        // "encoder", "decoder" or "cross"; "" in a model that has one kind only
  std::int64_t layer = 0;  // of that name, from 0
  bool queries_source = false, keys_source = false;  // positions of the source, not of the tokens
  bool causal = false;

  bool cross() const { return queries_source != keys_source; }
  bool operator==(const Place&) const = default;
};

// Of such a model, in the order in which a pass comes to them. None: it has nothing but convolutions, or is
// recurrent and does not look back.
std::vector<Place> places(const ModelConfig&);

}  // namespace thimble
