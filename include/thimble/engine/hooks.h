// Sites of a forward pass, where hooks can observe or replace a value. Activation capture, ablation and
// activation patching use these two calls on the same forward pass that training uses. A pass without hooks
// has no extra cost.
#pragma once

#include <compare>
#include <cstdint>

#include "thimble/engine/tape.h"

namespace thimble {

// The kind of a site, with the shape of its value.
enum class SiteKind : std::uint8_t {
  source_embedding,     // (B, S, C), of the source of an encoder-decoder
  embedding,            // (B, T, C)
  projections,          // (B, T, H Dk + KV Dk + KV Dv), of self-attention, before rotary positions
  attention_weights,    // (B, H, Tq, Tk), after mask and softmax, before dropout
  head_output,          // (B, Tq, H Dv), the heads side by side before the output projection
  residual_mid,         // (B, T, C), after a block's self-attention or convolution
  residual_cross,       // (B, T, C), after a decoder block's cross-attention
  feed_forward_input,   // (B, T, C)
  feed_forward_output,  // (B, T, C), of a block's feed-forward net
  residual_out,         // (B, T, C), after a block's feed-forward net
  encoder_output,       // (B, T, C), or (B, S, C) of an encoder-decoder
  decoder_output,       // (B, T, C)
  logits,               // as the model returns them
};

// One value of a forward pass.
struct Site {
  SiteKind kind;
  // Of projections, attention_weights and head_output, the index in Model::attention_layers(); of residual_*
  // and feed_forward_*, the number of the block, where the blocks of a decoder follow those of the encoder;
  // else 0.
  std::int32_t layer = 0;
  // The position that the value starts at. A model that attends from one position at a time visits the site
  // once for each of them.
  std::int32_t position = 0;

  Site start() const { return {kind, layer}; }
  auto operator<=>(const Site&) const = default;  // NOLINT(modernize-use-nullptr): mistakes <=> for it
};

inline namespace THIMBLE_PRECISION {

// An interface that receives the values of sites.
class Hooks {
 public:
  virtual ~Hooks() = default;

  // Returns whether replace() may overwrite the value of a site. Hooks that only observe return false, which
  // saves a copy of the value.
  virtual bool may_replace(Site) const { return true; }

  // May overwrite the value of a site, in place, and returns whether it did. A replaced value is a constant:
  // no gradient flows back through it.
  virtual bool replace(Site, const Shape&, MatrixView /*value*/) { return false; }

  // Receives the value that the rest of the pass uses.
  virtual void observe(Site, const Shape&, ConstMatrixView /*value*/) {}

  // Receives the same value on the tape, where its gradient can be read after backward(). Not called for
  // attention weights, which are part of a larger op.
  virtual void record(Site, Var) {}
};

// Passes x to the hooks, if any, and returns the value that the rest of the pass uses: x, or a constant that
// replaces it.
Var hook_point(Hooks* hooks, Site site, Var x);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
