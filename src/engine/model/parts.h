// The norms, the input and the output of models.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "thimble/engine/model_config.h"
#include "thimble/engine/modules.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The normalization that a config selects.
struct Norm {
  std::variant<LayerNorm, RmsNorm> kind;

  Norm(ParameterStore&, const std::string& name, const ModelConfig&);
  void init(ParameterStore&) const;
  Var operator()(Var x) const;
};

// The embedding of tokens and positions, with norm_embedding normalized. Parameters: PREFIXtoken_embedding.weight (V, C)
// and, for learned positions, PREFIXposition_embedding.weight (T, C), and for a norm PREFIXembedding_norm. Sites:
// source_tokens or tokens, and that of the constructor.
class InputEmbedding {
 public:
  // Makes an embedding of sequences of at most `length` tokens.
  InputEmbedding(ParameterStore&, const std::string& prefix, const ModelConfig&, std::int64_t vocabulary,
                 std::int64_t length, SiteKind site, std::uint32_t dropout_site);
  void init(ParameterStore&, std::uint64_t seed) const;

  // Returns the embedding (B, T, C) of tokens (B, T), T = length, of which the first ones are at position
  // `first`. Throws ShapeError when a sequence is too long.
  Var operator()(Tape&, std::span<const std::int32_t> tokens, std::int64_t length, const ForwardOptions&,
                 std::int64_t first = 0) const;

  Parameter tokens() const { return tokens_.weight; }  // (V, C)

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
  std::optional<Norm> norm_;
  Dropout dropout_;
};

// The output net: one linear layer, "output", or, with a hidden width, nn.Sequential(Linear, LayerNorm, ReLU,
// Linear) with the parameters "output.0", "output.1", "output.3". A tied output has the weight of the token embedding
// (Press and Wolf 2017), and "output.bias" alone.
class OutputNet {
 public:
  OutputNet(ParameterStore&, const ModelConfig&, std::int64_t vocabulary, Parameter token_embedding);
  void init(ParameterStore&, std::uint64_t seed) const;
  Var operator()(Var x) const;  // returns the logits (..., V) of x (..., C)

 private:
  std::optional<Linear> hidden_;
  std::optional<LayerNorm> norm_;
  std::optional<Linear> output_;  // none if it is tied
  Parameter tied_;
  std::optional<Parameter> bias_;  // of a tied output
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
