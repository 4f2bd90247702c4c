// What models have at their two ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "thimble/model/model_config.h"
#include "thimble/nn/modules.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Tokens and their places: what the first layer reads. Parameters: PREFIXtoken_embedding.weight (V, C) and,
// for learned positions, PREFIXposition_embedding.weight (T, C). The result has the site that is given.
class InputEmbedding {
 public:
  // Of sequences of at most `length` tokens.
  InputEmbedding(ParameterStore&, const std::string& prefix, const ModelConfig&, std::int64_t vocabulary,
                 std::int64_t length, SiteKind site, std::uint32_t dropout_site);
  void init(ParameterStore&, std::uint64_t seed) const;

  // tokens (B, T) with T = length, whose first one stands at position `first`: (B, T, C). Throws ShapeError
  // when a sequence goes on beyond the longest.
  Var operator()(Tape&, std::span<const std::int32_t> tokens, std::int64_t length, const ForwardOptions&,
                 std::int64_t first = 0) const;

  static constexpr std::uint32_t kDropoutSites = 1;

 private:
  Var positions(Var x, std::int64_t first) const;

  SiteKind site_;
  std::int64_t longest_;
  double token_std_, position_std_;
  bool added_;  // whether positions are added to the embedding of tokens
  Embedding tokens_;
  std::optional<Embedding> learned_;
  Tensor sinusoidal_;
  Dropout dropout_;
};

// Logits of vectors: one linear layer, "output", or, with a hidden width, a net as nn.Sequential(Linear,
// LayerNorm, ReLU, Linear) names it: "output.0", "output.1", "output.3".
class OutputNet {
 public:
  OutputNet(ParameterStore&, const ModelConfig&, std::int64_t vocabulary);
  void init(ParameterStore&, std::uint64_t seed) const;
  Var operator()(Var x) const;  // (..., C) to (..., V)

 private:
  std::optional<Linear> hidden_;
  std::optional<LayerNorm> norm_;
  Linear output_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
