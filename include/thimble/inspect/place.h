// What reports call the places of heads.
#pragma once

#include <span>
#include <string>

#include "thimble/core/json.h"
#include "thimble/model/place.h"

namespace thimble {

// "layer 0", or with a name "cross 0".
std::string title(const Place&);

// [{"name", "layer", "queries": "source" or "tokens", "keys", "causal"}]
Json to_json(std::span<const Place>);

}  // namespace thimble
