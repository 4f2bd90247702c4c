// The naive loops of whole attentions, with weights that are kept.
#pragma once

#include "engine/kernels/attention/attention.h"
#include "engine/kernels/reference_attention.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

inline void naive_attention_forward(MatrixView out, kernels::AttentionInputs x, Real* scratch,
                                    const kernels::AttentionPass& a) {
  reference::attention_weights_forward(a.kept.full, x.q, x.k, scratch, a.sizes, a.mask, a.scale);
  reference::attention_apply_forward(out, a.kept.full, x.v, a.sizes);
}

inline void naive_attention_backward(kernels::AttentionGradients d, ConstMatrixView dout,
                                     kernels::AttentionInputs x, Real* scratch,
                                     const kernels::AttentionPass& a) {
  reference::attention_backward(d.q, d.k, d.v, dout, x.q, x.k, x.v, a.kept.full, a.kept.full, a.kept.dropout,
                                scratch, a.sizes, a.mask, a.scale);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
