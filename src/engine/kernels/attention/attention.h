// Multi-head scaled dot-product attention (Vaswani et al. 2017, section 3.2).
//
// Rows are positions, sequence by sequence; columns are heads side by side: q (B Tq, H Dk), k (B Tk, KV Dk),
// v (B Tk, KV Dv), out (B Tq, H Dv), which may be blocks of columns of wider matrices. H / KV consecutive
// heads of q share a head of k and v: all of them with KV = 1 (multi-query, Shazeer 2019), some of them with
// 1 < KV < H (grouped-query, Ainslie et al. 2023). Attention weights and scores are (B H Tq, Tk): one row per
// sequence, head and query.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/kernels/dropout.h"
#include "thimble/engine/attention_mask.h"
#include "thimble/engine/attention_sizes.h"
#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

struct AttentionInputs {
  ConstMatrixView q, k, v;
};

// The gradients of the inputs, in the order in which each head adds to them, or of scores that were given for q and k;
// those without data are skipped.
struct AttentionGradients {
  GradientView v, q, k, scores{};
};

// What the backward pass reads of the weights: after the softmax, their dropout if it has data, and what was applied to the
// values, if that is not the one times the other.
struct KeptWeights {
  MatrixView full{}, dropout{}, applied{};
};

inline constexpr std::int64_t kQueryBlock = 32;  // rows; their weights on 2048 keys fit a core's cache

// What both passes of an attention have in common.
struct AttentionPass {
  AttentionSizes sizes;
  AttentionMask mask{};
  Real scale = 1;
  Real dropout = 0;  // of the weights, where there is a key
  std::optional<DropoutKey> key{};
  bool keeps = true;  // the weights; else the backward pass computes them again (Rabe and Staats 2021)
  KeptWeights kept{};
  // Queries at a time, with the keys that one of them attends to; 0: all of them, with all keys.
  std::int64_t block = kQueryBlock;
};

// Returns the elements of scratch memory that a forward pass requires, or both passes do.
std::int64_t attention_scratch(const AttentionPass& pass, bool backward);

// Returns the number of scores that a forward pass computes: fewer than B H Tq Tk with a causal mask or padding.
std::int64_t attention_score_count(const AttentionPass& pass);

// Computes out = (P f) v for every head, with weights P = softmax(scale q k^T) over the visible keys, or scale q k^T
// if sizes.softmax is false, and their dropout f. P is 0 for hidden keys. Writes P and f to kept.full and kept.dropout,
// where the pass keeps them, for the keys that it computes.
void attention_forward(MatrixView out, AttentionInputs inputs, Real* scratch, const AttentionPass& pass);

// Adds the gradients through attention_forward(), or through the steps in attention_steps.h.
void attention_backward(AttentionGradients gradients, ConstMatrixView dout, AttentionInputs inputs,
                        Real* scratch, const AttentionPass& pass);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
