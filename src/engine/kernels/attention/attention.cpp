// Multi-head scaled dot-product attention, a block R of queries of one head of one sequence at a time. P: weights, f:
// dropout factors.
//   forward    S_R = scale Q_R K^T - slope |i - j|,  P_R = softmax of each row of S_R over its visible keys,
//              M_R = P_R f_R,  O_R = M_R V
//   backward   dV += M_R^T dO_R,  dM_R = dO_R V^T,  dP_R = dM_R f_R,  dS_ij = P_ij (dP_ij - sum_l dP_il P_il),
//              dQ_R += scale dS_R K,  dK += scale dS_R^T Q_R;  of given scores S:  dscores += dS
//   without softmax  P = S,  dS = dP
//   saved: P, and with dropout f; or nothing, and the backward pass computes them again
// P and dS are 0 for hidden keys. Keys that no query of a block attends to are left out: they would add zero. Sums over
// keys or queries continue from block to block, one chain of multiply-adds, so that no bit depends on the blocks.
#include "engine/kernels/attention/attention.h"

#include "engine/kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/attention/attention.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels/attention/attention-inl.h"
#include "engine/kernels/attention/blocks.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

// Calls f(sequence, head, block, P_R, f_R) for every block of queries, with weights that it computes, or that were kept;
// without dropout, f_R has no data.
template <class F>
HWY_INLINE void each_weights(const AttentionInputs& x, Real* memory, const ScratchParts& scratch,
                             const AttentionPass& a, bool computes, const F& f) {
  const AttentionSizes& s = a.sizes;
  each_head(s, [&](std::int64_t b, std::int64_t h) HWY_ATTR {
    if (computes && h % s.heads_per_kv_head() == 0) {
      const ConstMatrixView kh = kv_block(x.k, b, h, s);
      transpose(memory, s.keys, kh.data, kh.stride, s.keys, s.d_key);
      multiply_by(memory, a.scale, s.keys * s.d_key);
    }
    each_query_block(a, b, [&](const QueryBlock& r) HWY_ATTR {
      const auto part = [&](MatrixView kept, Real* other) {
        return kept.data != nullptr ? weights_block(kept, b, h, s, r)
                                    : MatrixView{other, r.rows, r.keys, r.keys};
      };
      const MatrixView p = part(a.kept.full, memory + scratch.weights),
                       factor = part(a.kept.dropout, a.key && !a.keeps ? memory + scratch.factors : nullptr);
      if (computes) {
        weights_of(p, block(x.q, b, s.queries, h, s.heads).row_block(r.first, r.rows), memory, b, h, s,
                   r.mask);
        const bool whole = r.keys == s.keys;  // rows follow each other
        for (std::int64_t i = 0; a.key && i < (whole ? 1 : r.rows); ++i)
          sample_dropout_factors(factor.row(i), a.dropout, *a.key, b, (h * s.queries + r.first + i) * s.keys,
                                 (whole ? r.rows : 1) * r.keys);
      }
      f(b, h, r, p, factor);
    });
  });
}

void attention_forward(MatrixView out, AttentionInputs x, Real* memory, const AttentionPass& a) {
  const AttentionSizes& s = a.sizes;
  const ScratchParts scratch(a, false);
  const auto apply = [&](std::int64_t b, std::int64_t h, const QueryBlock& r, MatrixView p,
                         ConstMatrixView factor) HWY_ATTR {
    MatrixView m = p;
    if (a.keeps && factor.data != nullptr) m = {memory + scratch.product, r.rows, r.keys, r.keys};
    if (factor.data != nullptr) mul_forward(m, p, factor);
    const MatrixView o = block(out, b, s.queries, h, s.heads).row_block(r.first, r.rows);
    add_product({o, true}, {m.data, m.stride, 1}, kv_block(x.v, b, h, s).row_block(0, r.keys));
  };
  each_weights(x, memory, scratch, a, true, apply);
}

// Returns the rows of dk or dv that a block adds to. While they are uninitialized, the first block of the first of the
// heads that share them overwrites them, and sets those of keys that it leaves out to zero.
GradientView shared_gradient(GradientView x, std::int64_t sequence, std::int64_t head, const QueryBlock& r,
                             const AttentionSizes& s) {
  x.uninitialized = x.uninitialized && r.first == 0 && head % s.heads_per_kv_head() == 0;
  const GradientView all = kv_block(x, sequence, head, s);
  for (std::int64_t j = r.keys; x.uninitialized && j < s.keys; ++j)
    std::fill_n(all.row(j), all.cols, Real{0});
  return all.row_block(0, r.keys);
}

void attention_backward(AttentionGradients d, ConstMatrixView dout, AttentionInputs x, Real* memory,
                        const AttentionPass& a) {
  const AttentionSizes& s = a.sizes;
  const ScratchParts scratch(a, true);
  if (!a.keeps && d.q.uninitialized) {  // keys of earlier blocks may have the same gradient
    for (std::int64_t i = 0; i < d.q.rows; ++i) std::fill_n(d.q.row(i), d.q.cols, Real{0});
    d.q.uninitialized = false;
  }
  const auto backward = [&](std::int64_t b, std::int64_t h, const QueryBlock& r, ConstMatrixView p,
                            ConstMatrixView factor) HWY_ATTR {
    const auto queries = [&](auto all) {
      return block(all, b, s.queries, h, s.heads).row_block(r.first, r.rows);
    };
    const MatrixView ds{memory + scratch.product, r.rows, r.keys, r.keys};
    const ConstMatrixView go = queries(dout), vh = kv_block(x.v, b, h, s);
    if (d.v.data != nullptr) {  // O = M V
      ConstMatrixView m = p;
      if (a.kept.applied.data != nullptr) {
        m = weights_block(a.kept.applied, b, h, s, r);
      } else if (factor.data != nullptr) {
        mul_forward(ds, p, factor);
        m = ds;
      }
      add_product(shared_gradient(d.v, b, h, r, s), {m.data, 1, m.stride}, go);
    }
    if (d.q.data == nullptr && d.k.data == nullptr && d.scores.data == nullptr) return;
    if (r.first == 0 && h % s.heads_per_kv_head() == 0)
      transpose(memory + scratch.v_transposed, s.keys, vh.data, vh.stride, s.keys, s.d_value);
    score_gradient(ds, go, memory + scratch.v_transposed, p, factor, b, s, r.mask, a.scale);
    if (d.scores.data != nullptr) accumulate(weights_block(d.scores, b, h, s), ds);
    if (d.q.data != nullptr)
      add_product(queries(d.q), {ds.data, ds.stride, 1}, kv_block(x.k, b, h, s).row_block(0, r.keys));
    if (d.k.data != nullptr)
      add_product(shared_gradient(d.k, b, h, r, s), {ds.data, 1, ds.stride}, queries(x.q));
  };
  each_weights(x, memory, scratch, a, !a.keeps, backward);
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, attention_forward,
                 (MatrixView out, AttentionInputs inputs, Real* scratch, const AttentionPass& pass), out,
                 inputs, scratch, pass)
THIMBLE_DISPATCH(void, attention_backward,
                 (AttentionGradients gradients, ConstMatrixView dout, AttentionInputs inputs, Real* scratch,
                  const AttentionPass& pass),
                 gradients, dout, inputs, scratch, pass)

#if HWY_ONCE
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

std::int64_t attention_scratch(const AttentionPass& pass, bool backward) {
  return ScratchParts(pass, backward).end;
}

std::int64_t attention_score_count(const AttentionPass& pass) {
  std::int64_t scores = 0;
  for (std::int64_t b = 0; b < pass.sizes.batch; ++b)
    each_query_block(pass, b, [&](const QueryBlock& r) { scores += pass.sizes.heads * r.rows * r.keys; });
  return scores;
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
#endif  // HWY_ONCE
