// Names of heads, and sets of heads that a user names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/engine/attention_layer.h"
#include "thimble/train/json.h"

namespace thimble {

// Returns "0.1" for layer 0 head 1 of an encoder-only model, "cross.0.1" otherwise.
std::string head_name(std::span<const AttentionLayer> layers, HeadId id);

// Returns {"layer", "head", "name"} of a head of an attention, see HeadId::name().
Json head_json(HeadId id, const std::string& attention = "");
Json head_json(std::span<const AttentionLayer> layers, HeadId id);

// Returns the heads of a list of names, "0.1,1.*", in ascending order. They may be patterns of a shell, in which
// "*" stands for any text; for an encoder-only model, "encoder.0.1" is also a name. Throws ConfigError, with the
// names that there are, for an unknown or repeated name.
std::vector<HeadId> parse_heads(std::string_view list, std::span<const AttentionLayer> layers);

}  // namespace thimble
