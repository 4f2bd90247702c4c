// The attention layers of a model, and identifiers of their heads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/engine/model_config.h"

namespace thimble {

// An attention layer of a model. Model::attention() returns its parameters.
struct AttentionLayer {
  std::string stack{};     // "encoder", "decoder" or "cross"; "" in an encoder-only model
  std::int64_t index = 0;  // in that stack
  std::int64_t block = 0;  // of the model; the blocks of a decoder follow those of the encoder
  std::int64_t heads = 1;
  std::int64_t d_value = 0;  // columns of a head's output
  bool queries_source = false,
       keys_source = false;  // whether they are positions of the source, not of the tokens
  bool causal = false;

  bool cross() const { return queries_source != keys_source; }
  std::string name() const;                        // "cross.0"; "encoder.0" in an encoder-only model
  std::string title() const;                       // the name; "layer 0" in an encoder-only model
  std::string head_name(std::int64_t head) const;  // HeadId::name()
  bool operator==(const AttentionLayer&) const = default;
};

// The identifier of a head: the index of its layer in attention_layers(), and its index in that layer.
struct HeadId {
  std::int64_t layer = 0, head = 0;
  auto operator<=>(const HeadId&) const = default;  // NOLINT(modernize-use-nullptr): mistakes <=> for it
  // Returns the name, as users write it, with an attention that has one: "1.0", "cross.1.0".
  std::string name(const std::string& attention = "") const;
};

// Returns the attention layers of a model of this config, in the order of a forward pass. There are none with
// convolutions, nor in a recurrent model without attention.
std::vector<AttentionLayer> attention_layers(const ModelConfig&);

}  // namespace thimble
