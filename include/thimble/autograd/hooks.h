// Sites of a forward pass, where hooks can observe or replace a value. Activation capture, ablation and
// patching are made of these two calls on the very forward pass that trains; a pass without hooks pays
// nothing.
#pragma once

#include <compare>
#include <cstdint>

#include "thimble/autograd/tape.h"

namespace thimble {

enum class SiteKind : std::uint8_t {
  source_embedding,   // (B, S, C), of the source of an encoder-decoder
  embedding,          // (B, T, C)
  attention_weights,  // (B, H, Tq, Tk), after mask and softmax, before dropout
  head_output,        // (B, Tq, H Dv), the heads side by side before the output projection
  residual_mid,       // (B, T, C), after a block's self-attention or convolution
  residual_cross,     // (B, T, C), after a decoder block's cross-attention
  residual_out,       // (B, T, C), after a block's feed-forward net
  encoder_output,     // (B, T, C), or (B, S, C) of an encoder-decoder
  decoder_output,     // (B, T, C)
  logits,             // as the model returns them
};

// One value of a forward pass.
struct Site {
  SiteKind kind;
  // The number in Model::attention_layers() of attention_weights and head_output, the number of the block of
  // residual_* (those of a decoder follow those of the encoder), else 0.
  std::int32_t layer = 0;
  // The position that the value starts at: a model that attends from one position after the other comes to
  // the same site once for each.
  std::int32_t position = 0;

  Site start() const { return {kind, layer}; }
  auto operator<=>(const Site&) const = default;
};

}  // namespace thimble

namespace thimble {
inline namespace THIMBLE_PRECISION {

class Hooks {
 public:
  virtual ~Hooks() = default;

  // May overwrite the value of a site, in place, and returns whether it did. A replaced value is a constant:
  // no gradient flows back through it.
  virtual bool replace(Site, const Shape&, MatrixView /*value*/) { return false; }

  // Receives the value that the rest of the pass uses.
  virtual void observe(Site, const Shape&, ConstMatrixView /*value*/) {}

  // Receives the same value on the tape, where its gradient can be read after backward(). Not called for
  // attention weights, which are part of a larger op.
  virtual void record(Site, Var) {}
};

// Returns x as the rest of the pass is to use it: x itself, or a constant in its place.
Var hook_point(Hooks* hooks, Site site, Var x);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
