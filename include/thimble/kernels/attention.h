// Multi-head scaled dot-product attention (Vaswani et al. 2017, section 3.2).
//
// Rows are positions, sequence by sequence; columns are heads side by side. So q is (B Tq, H Dk), k (B Tk, KV
// Dk), v (B Tk, KV Dv), out (B Tq, H Dv), and all of them may be blocks of columns of wider matrices. Each of
// the KV heads of k and v serves H / KV neighbouring heads of q: all of them with KV = 1 (multi-query,
// Shazeer 2019), some in between (grouped-query, Ainslie et al. 2023). The attention weights are (B H Tq,
// Tk): one row per sequence, head and query.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "thimble/kernels/attention_sizes.h"
#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Which keys a query may see: always the first few, so a number says it all. And how distance counts.
struct AttentionMask {
  bool causal = false;                    // query i sees keys 0 .. first_query + i
  std::span<const std::int32_t> lengths;  // (B) keys of each sequence, the rest is padding; empty: no padding
  std::int64_t first_query = 0;           // where query 0 stands among the keys
  // (H) ALiBi (Press et al. 2022): scores of head h lose slopes[h] for each position between query and key.
  std::span<const Real> slopes = {};

  std::int64_t visible(std::int64_t sequence, std::int64_t query, std::int64_t keys) const {
    if (causal) keys = std::min(keys, first_query + query + 1);
    if (!lengths.empty()) keys = std::min<std::int64_t>(keys, lengths[static_cast<std::size_t>(sequence)]);
    return keys;
  }
};

// weights = softmax over the visible keys of scale q k^T, 0 on the others; a query without a visible key gets
// a row of zeros. scratch: Dk Tk elements.
void attention_weights_forward(MatrixView weights, ConstMatrixView q, ConstMatrixView k, Real* scratch,
                               const AttentionSizes& sizes, const AttentionMask& mask, Real scale);

// The same of scores (B H Tq, Tk), as they come.
void attention_softmax_forward(MatrixView weights, ConstMatrixView scores, const AttentionSizes& sizes,
                               const AttentionMask& mask);

// out = weights v, head by head.
void attention_apply_forward(MatrixView out, ConstMatrixView weights, ConstMatrixView v,
                             const AttentionSizes& sizes);

// Adds to dq, dk and dv, of each head in this order dv, dq, dk, the gradients through both. `mixed` are the
// weights that were mixed: `weights`, or `weights` times `dropout` where that has data. dq and dk without
// data: the weights did not come from q and k. scratch: Dv Tk + Tq Tk elements.
void attention_backward(GradientView dq, GradientView dk, GradientView dv, ConstMatrixView dout,
                        ConstMatrixView q, ConstMatrixView k, ConstMatrixView v, ConstMatrixView weights,
                        ConstMatrixView mixed, ConstMatrixView dropout, Real* scratch,
                        const AttentionSizes& sizes, Real scale);

// The same for scores: adds to dscores and dv. scratch: Dv Tk + Tq Tk elements.
void attention_softmax_backward(GradientView dscores, GradientView dv, ConstMatrixView dout,
                                ConstMatrixView v, ConstMatrixView weights, ConstMatrixView mixed,
                                ConstMatrixView dropout, Real* scratch, const AttentionSizes& sizes);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
