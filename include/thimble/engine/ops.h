// The differentiable operations. Each checks its shapes (ShapeError), runs a kernel and records the backward
// kernel; the formulas are in src/engine/kernels. Notation: B batch, T time, C channels, H heads, N rows (all
// dimensions but the last), V vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "thimble/engine/attention_mask.h"
#include "thimble/engine/dropout_key.h"
#include "thimble/engine/hooks.h"
#include "thimble/engine/rotary_config.h"
#include "thimble/engine/score_kind.h"
#include "thimble/engine/tape.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// An operand that is columns first .. first + count - 1 of `source`: for example the queries in a projection
// to queries, keys and values. The constructor throws ShapeError for columns outside of the source.
struct Columns {
  Var source;
  std::int64_t first, count;

  Columns(Var x);  // all columns
  Columns(Var x, std::int64_t first_column, std::int64_t columns);

  Shape shape() const { return source.shape().with_last(count); }
  MatrixView value() const { return source.value().column_block(first, count); }
  bool needs_grad() const { return source.needs_grad(); }
  // For ops, as in Var. The gradient of some of the columns is never uninitialized, since a kernel does not
  // write the others.
  GradientView grad_accumulator() const;
  GradientView zeroed_grad_accumulator() const;
};

// Returns a + b, of one shape.
Var add(Var a, Var b);

// Returns the element-wise product a b, of one shape.
Var mul(Var a, Var b);

// Returns factor x.
Var scale(Var x, Real factor);

// Returns the matrix product a b (M, N) of a (M, K) and b (K, N).
Var matmul(Var a, Var b);

// Returns x W^T + bias (..., O) with x (..., I), weight (O, I) and bias (O), if any. The I inputs of the
// weight may be several dimensions.
Var linear(Columns x, Var weight, std::optional<Var> bias = std::nullopt);

// Returns elements first .. first + count - 1 (..., count) of linear(x, weight, bias).
Var linear_part(Columns x, Var weight, std::optional<Var> bias, std::int64_t first, std::int64_t count);

// Returns y_h = x_h W_h (..., H E) for every head h, with x (..., H D) and weight (H, D, E). The dot product
// of y and keys is the "general" score q^T W k of Luong et al. (2015).
Var head_linear(Columns x, Var weight, std::int64_t heads);

// Returns x (..., H D) with RMS normalization of every head, without a weight. The dot product of two such
// heads is D times their cosine similarity.
Var head_norm(Columns x, std::int64_t heads, Real epsilon = Real(1e-5));

// Returns score_ij = sum_d weight_d tanh(q_id + k_jd) (B, H, Tq, Tk) for every head (Bahdanau et al. 2015,
// appendix A.1.2, with projected queries W q and keys U k): q (B, Tq, H D), k (B, Tk, KV D), weight (H, D).
// KV divides H; H / KV consecutive heads share their keys. Allocates memory for the scores, not for their
// terms.
Var additive_score(Columns q, Columns k, Var weight, std::int64_t heads, std::int64_t kv_heads);

// Returns x (B, T, C) with rotary positions (Su et al. 2021, "RoFormer") in columns first .. first + count -
// 1, which are heads of d_key columns, an even number. Pair i of columns of a head at time t is rotated by the
// angle (first_position + t) base^(-2i / d_key); the config says which columns are a pair.
Var rotary(Var x, std::int64_t first, std::int64_t count, std::int64_t d_key, std::int64_t first_position = 0,
           const RotaryConfig& config = {});

// Returns the softmax over the last dimension.
Var softmax(Var x);

// Returns the layer normalization over the last dimension: x (..., C), weight and bias (C).
Var layer_norm(Var x, Var weight, Var bias, Real epsilon = Real(1e-5));

// Returns the RMS normalization over the last dimension (Zhang and Sennrich 2019): x (..., C), weight (C).
Var rms_norm(Var x, Var weight, Real epsilon = Real(1e-5));

// Return the activation of every element.
Var relu(Var x);
Var gelu(Var x);       // exact: x Phi(x)
Var gelu_tanh(Var x);  // the tanh approximation
Var silu(Var x);       // x sigmoid(x)
Var tanh(Var x);

// Returns x with each element 0 with probability p, else times 1 / (1 - p); 0 <= p < 1. The first dimension
// counts samples.
Var dropout(Var x, Real p, const kernels::DropoutKey& key);

// Returns the rows (B, T, C) of table (V, C) for tokens (B, T), row-major. Throws ShapeError for a token
// outside 0 .. V-1.
Var embedding(Var table, std::span<const std::int32_t> tokens, std::int64_t length);

// Returns rows (R, C) of x (..., C), counted over all dimensions but the last. Throws ShapeError for a row
// outside x.
Var select_rows(Var x, std::span<const std::int32_t> rows);

// Returns x (B, T, C) plus positions (at least T, C) in every sequence.
Var add_positions(Var x, Var positions);

// Returns for every position of x (B, T, C) the `window` positions around it, or, if causal, those that end
// with it: (B, T, C window), position k of channel c in column c window + k, 0 outside the sequence. lengths
// (B) are the numbers of positions that count, empty: all T. A linear map of the result with a weight (O, C,
// window) is torch.nn.Conv1d. Throws ShapeError for an even window that is not causal, or a length outside 0
// .. T.
Var unfold(Var x, std::int64_t window, bool causal, std::span<const std::int32_t> lengths = {});

// Returns step t (B, C) of x (B, T, C). Throws ShapeError for a step outside 0 .. T-1.
Var step(Var x, std::int64_t t);

// Returns T >= 1 steps (B, C) one after another: (B, T, C).
Var stack(std::span<const Var> steps);

// Returns a (..., A) and b (..., B) side by side: (..., A + B).
Var concat(Var a, Var b);

// Returns the next state (B, H) of a gated recurrent unit (Cho et al. 2014), as torch.nn.GRUCell: gates_x and
// gates_h (B, 3H) are the projections of the input and of the state h (B, H) to the reset gate, the update
// gate and the candidate. A sequence whose length (lengths (B), empty: unlimited) is at most t keeps its
// state.
Var gru_cell(Var gates_x, Var gates_h, Var h, std::span<const std::int32_t> lengths = {}, std::int64_t t = 0);

// Return one vector per sequence (B, C) of x (B, T, C). lengths (B) are the numbers of positions that count,
// empty: all T. Throw ShapeError for a length outside 1 .. T.
Var mean_pool(Var x, std::span<const std::int32_t> lengths = {});
Var first_pool(Var x);
Var last_pool(Var x, std::span<const std::int32_t> lengths = {});

struct CrossEntropyOptions {
  Real smoothing = 0;           // label smoothing, in [0, 1)
  std::int64_t normalizer = 0;  // the divisor of the sum; 0: the number of labeled rows
};

// Returns the cross entropy (1) of logits (..., V) and one label per row. Rows with a label below 0 do not
// count; without a labeled row the loss is 0. Throws ShapeError for a label of V or more.
Var cross_entropy(Var logits, std::span<const std::int32_t> labels, const CrossEntropyOptions& = {});

struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;  // of keys and values; must divide heads
  kernels::AttentionMask mask;
  std::optional<Real> scale;               // of q k^T; default 1 / sqrt(Dk)
  bool softmax = true;                     // false: the scores are the weights; not with ALiBi
  Real dropout = 0;                        // of the attention weights
  std::optional<kernels::DropoutKey> key;  // required when dropout > 0
  Hooks* hooks = nullptr;
  Site site{SiteKind::attention_weights};  // of the weights, for hooks
  // Whether the weights are kept for backward(), or computed again; default: those of few keys are. Hooks get
  // weights that are kept.
  std::optional<bool> keep_weights;
};

// Returns multi-head attention (B, Tq, H Dv) of q (B, Tq, H Dk) on k (B, Tk, KV Dk) and v (B, Tk, KV Dv). The
// output of a query without a visible key is 0, and so is its gradient. mask.lengths must outlive backward().
Var attention(Columns q, Columns k, Columns v, const AttentionOptions& options);

// Returns the scores scale q k^T (B, H, Tq, Tk) of attention(): q (B, Tq, H D), k (B, Tk, KV D).
Var score_product(Columns q, Columns k, std::int64_t heads, std::int64_t kv_heads, Real scale);

// Returns scores (B, H, Tq, Tk) with ALiBi, and -infinity for hidden keys. mask.lengths must outlive the call.
Var mask_scores(Var scores, const kernels::AttentionMask& mask);

// Returns multi-head attention (B, Tq, H Dv) with scores (B, H, Tq, Tk) of any kind on v (B, Tk, KV Dv).
// Ignores options.scale and keeps the weights; options.softmax must be true.
Var attend(Var scores, Columns v, const AttentionOptions& options);

// Returns the shape of a score's parameter: matrices W (H, Dk, Dk), vectors w (H, Dk), or none.
std::optional<Shape> score_parameter(Score, std::int64_t heads, std::int64_t d_key);

// Returns the factor of q^T k, or of q^T W k, in a score; nothing where the score is not such a product.
std::optional<double> score_factor(Score, std::int64_t d_key);

// Returns multi-head attention with that score. It has a `parameter` where score_parameter() has a shape.
Var scored_attention(Score, Columns q, Columns k, Columns v, std::optional<Var> parameter,
                     AttentionOptions options);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
