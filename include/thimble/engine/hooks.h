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
  source_tokens,      // (B, S, C), of an encoder-decoder's source: the embedding of tokens, without positions
  source_embedding,   // (B, S, C), with positions
  source_positions,   // (B, S, C), what is added for positions, if hooks want it
  tokens,             // (B, T, C), the embedding of tokens, without positions
  positions,          // (B, T, C), as source_positions
  embedding,          // (B, T, C)
  normalized,         // (B, T, C), of a pre-norm block, what its self-attention or convolution reads
  projections,        // (B, T, H Dk + KV Dk + KV Dv), of self-attention, before rotary positions
  rotated,            // the same, of rotary positions, after them
  attention_scores,   // (B, H, Tq, Tk), -infinity where masked; before a softmax, if hooks want it
  attention_weights,  // (B, H, Tq, Tk), after mask and softmax, before dropout
  head_output,        // (B, Tq, H Dv), the heads side by side before the output projection
  attention_output,   // (B, T, C), what a block's self-attention or convolution adds to the residual stream
  residual_mid,       // (B, T, C), after that
  cross_queries,      // (B, T, H Dk), of cross-attention
  cross_keys_values,  // (B, S, KV Dk + KV Dv)
  cross_output,       // (B, T, C), what a decoder block's cross-attention adds
  residual_cross,     // (B, T, C), after a decoder block's cross-attention
  feed_forward_input,   // (B, T, C)
  feed_forward_pre,     // (B, T, F), the hidden layer of a block's feed-forward net before its activation
  feed_forward_gate,    // (B, T, F), of a gated net, what multiplies the activation
  feed_forward_post,    // (B, T, F), the hidden layer
  feed_forward_output,  // (B, T, C), of a block's feed-forward net
  residual_out,         // (B, T, C), after a block's feed-forward net
  encoder_output,       // (B, T, C), or (B, S, C) of an encoder-decoder
  decoder_output,       // (B, T, C)
  logits,               // as the model returns them
};

// One value of a forward pass.
struct Site {
  SiteKind kind;
  // Of projections, rotated, cross_queries, cross_keys_values, attention_scores, attention_weights and head_output, the
  // index in Model::attention_layers(); of normalized, attention_output, cross_output, residual_* and feed_forward_*, the
  // number of the block, where the blocks of a decoder follow those of the encoder; else 0.
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

  // Returns whether a pass computes a site that it otherwise has no value of: attention_scores, positions and
  // source_positions. The rest of the pass has the same bits.
  virtual bool wants(Site) const { return false; }

  // Returns whether replace() may overwrite the value of a site. Hooks that only observe return false, which
  // saves a copy of the value.
  virtual bool may_replace(Site) const { return true; }

  // May overwrite the value of a site, in place, and returns whether it did. A replaced value is a leaf: record() gets
  // it, with a gradient, and no gradient flows back through it.
  virtual bool replace(Site, const Shape&, MatrixView /*value*/) { return false; }

  // Returns what replace() left of a site that it overwrote in part: 1 for each element that is still that of the pass,
  // through which gradients flow back, and 0 for the others. Without data, nothing is left. Must stay until the
  // backward pass is over.
  virtual ConstMatrixView kept(Site) const { return {}; }

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
