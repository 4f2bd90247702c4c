// Attention that keeps no weights (Rabe & Staats 2021, "Self-attention Does Not Need O(n^2) Memory"): it
// computes those of a few queries at a time, and again in the backward pass. Arguments as in attention.h.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/kernels/attention/attention.h"
#include "engine/kernels/dropout.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Dropout of attention weights; without a key there is none.
struct WeightsDropout {
  Real probability = 0;
  std::optional<DropoutKey> key;
};

// Returns the elements of scratch memory that a forward pass requires, or both passes do.
std::int64_t memory_efficient_scratch(const AttentionSizes& sizes, bool backward, bool dropout);

// Returns the number of scores that a forward pass computes: fewer than B H Tq Tk with a causal mask or padding.
std::int64_t memory_efficient_scores(const AttentionSizes& sizes, const AttentionMask& mask);

// Computes out = (weights times dropout) v, with the bits of attention_weights_forward() and
// attention_apply_forward().
void memory_efficient_forward(MatrixView out, ConstMatrixView q, ConstMatrixView k, ConstMatrixView v,
                              Real* scratch, const AttentionSizes& sizes, const AttentionMask& mask,
                              Real scale, const WeightsDropout& dropout);

// Adds the gradients through memory_efficient_forward(), with the bits of attention_backward() where they do not
// overlap.
void memory_efficient_backward(AttentionGradients gradients, ConstMatrixView dout, AttentionInputs inputs,
                               Real* scratch, const AttentionSizes& sizes, const AttentionMask& mask,
                               Real scale, const WeightsDropout& dropout);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
