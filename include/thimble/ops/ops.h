// The differentiable operations. Each checks its shapes (ShapeError), runs a kernel and records the backward
// kernel; the formulas stand in src/kernels. Notation: B batch, T time, C channels, H heads, N rows (all
// dimensions but the last), V vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "thimble/autograd/hooks.h"
#include "thimble/autograd/tape.h"
#include "thimble/kernels/attention.h"
#include "thimble/kernels/dropout.h"
#include "thimble/ops/score_kind.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Columns first .. first + count - 1 of `source`, as an operand: query, key or value inside one projection,
// say. Columns outside of it throw ShapeError.
struct Columns {
  Var source;
  std::int64_t first, count;

  Columns(Var x);  // all of x
  Columns(Var x, std::int64_t first_column, std::int64_t columns);

  Shape shape() const { return source.shape().with_last(count); }
  MatrixView value() const { return source.value().column_block(first, count); }
  bool needs_grad() const { return source.needs_grad(); }
  // For ops, as in Var. For some of the columns it is never uninitialized, since the kernel writes no others.
  GradientView grad_accumulator() const;
  GradientView zeroed_grad_accumulator() const;
};

// a + b, of one shape.
Var add(Var a, Var b);

// a b element by element, of one shape.
Var multiply(Var a, Var b);

// factor x.
Var scale(Var x, Real factor);

// a b with a (M, K) and b (K, N): (M, N).
Var matmul(Var a, Var b);

// x W^T + bias with x (..., I), weight (O, I) and bias (O), if any: (..., O). The I inputs of the weight may
// be several dimensions.
Var linear(Columns x, Var weight, std::optional<Var> bias = std::nullopt);

// Only elements first .. first + count - 1 of that, by these rows of weight and bias: (..., count).
Var linear_part(Columns x, Var weight, Var bias, std::int64_t first, std::int64_t count);

// y_h = x_h W_h for every head h, with x (..., H D) and weight (H, D, E): (..., H E). What makes a dot
// product Luong et al.'s (2015) "general" score, q^T W k.
Var head_linear(Columns x, Var weight, std::int64_t heads);

// RMS normalization of each of the heads of x (..., H D) by itself, without a weight: of that shape. The dot product of
// two such heads is D times the cosine of the angle between them.
Var head_norm(Columns x, std::int64_t heads, Real epsilon = Real(1e-5));

// score_ij = sum_d weight_d tanh(q_id + k_jd), head by head (Bahdanau et al. 2015, appendix A.1.2; their W q
// and U k are projections made before): q (B, Tq, H D), k (B, Tk, KV D), weight (H, D): (B, H, Tq, Tk). KV
// divides H; H / KV consecutive heads share their keys. Takes memory for the scores, not for every d of them.
Var additive_score(Columns q, Columns k, Var weight, std::int64_t heads, std::int64_t kv_heads);

// Rotary positions (Su et al. 2021, "RoFormer"): x (B, T, C) with every head, `depth` columns (an even
// number), of columns first .. first + count - 1 rotated by its position; the other columns stay as they are.
// Row t is at position first_position + t; columns 2i and 2i+1 of a head turn by that times 10000^(-2i /
// depth).
Var rotary(Var x, std::int64_t first, std::int64_t count, std::int64_t depth,
           std::int64_t first_position = 0);

// Softmax over the last dimension.
Var softmax(Var x);

// Layer normalisation over the last dimension, x (..., C), weight and bias (C).
Var layer_norm(Var x, Var weight, Var bias, Real epsilon = Real(1e-5));

// RMS normalisation over the last dimension (Zhang and Sennrich 2019), x (..., C), weight (C).
Var rms_norm(Var x, Var weight, Real epsilon = Real(1e-5));

Var relu(Var x);
Var gelu(Var x);       // exact: x Phi(x)
Var gelu_tanh(Var x);  // the tanh approximation
Var silu(Var x);       // x sigmoid(x)
Var tanh(Var x);

// Each element 0 with probability p, else times 1 / (1 - p); 0 <= p < 1. The first dimension counts samples.
Var dropout(Var x, Real p, const kernels::DropoutKey& key);

// Rows of table (V, C) for tokens (B, T), row-major: (B, T, C). Throws ShapeError on a token outside 0 ..
// V-1.
Var embedding(Var table, std::span<const std::int32_t> tokens, std::int64_t length);

// Rows of x (..., C), counted over all dimensions but the last: (R, C). Throws ShapeError on a row outside x.
Var select_rows(Var x, std::span<const std::int32_t> rows);

// x (B, T, C) plus positions (at least T, C) in every sequence.
Var add_positions(Var x, Var positions);

// For every position of x (B, T, C) the `window` positions around it, or, if causal, those that end with it:
// (B, T, C window), position k of channel c in column c window + k, 0 outside the sequence. lengths (B) says
// how many positions of x count, empty: all T. A linear map of it with a weight (O, C, window) is
// torch.nn.Conv1d. Throws ShapeError on an even window that is not causal, or a length outside 0 .. T.
Var windows(Var x, std::int64_t window, bool causal, std::span<const std::int32_t> lengths = {});

// Step t of x (B, T, C): (B, C). Throws ShapeError on a step outside 0 .. T-1.
Var step(Var x, std::int64_t t);

// T >= 1 steps (B, C) one after another: (B, T, C).
Var stack(std::span<const Var> steps);

// a (..., A) and b (..., B) side by side: (..., A + B).
Var concat(Var a, Var b);

// One step of a gated recurrent unit (Cho et al. 2014), as torch.nn.GRUCell: gates_x and gates_h (B, 3H),
// what the input and the state h (B, H) say to the reset gate, the update gate and the candidate: (B, H).
// A sequence whose length (lengths (B), empty: without end) is at most t keeps its state.
Var gru_cell(Var gates_x, Var gates_h, Var h, std::span<const std::int32_t> lengths = {}, std::int64_t t = 0);

// One vector per sequence of x (B, T, C): (B, C). lengths (B) says how many positions count, empty: all T.
// Throws ShapeError on a length outside 1 .. T.
Var mean_pool(Var x, std::span<const std::int32_t> lengths = {});
Var first_pool(Var x);
Var last_pool(Var x, std::span<const std::int32_t> lengths = {});

struct CrossEntropyOptions {
  Real smoothing = 0;           // label smoothing, in [0, 1)
  std::int64_t normalizer = 0;  // what the sum is divided by; 0: the number of labelled rows
};

// Cross entropy of logits (..., V) against one label per row: (1). Rows with a label below 0 do not count;
// without any labelled row the loss is 0. Throws ShapeError on a label of V or more.
Var cross_entropy(Var logits, std::span<const std::int32_t> labels, const CrossEntropyOptions& = {});

struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;  // of keys and values; must divide heads
  kernels::AttentionMask mask;
  std::optional<Real> scale;               // of q k^T; default 1 / sqrt(Dk)
  Real dropout = 0;                        // of the attention weights
  std::optional<kernels::DropoutKey> key;  // needed when dropout > 0
  Hooks* hooks = nullptr;
  Site site{SiteKind::attention_weights};  // where hooks find the weights
};

// Multi-head attention of q (B, Tq, H Dk) on k (B, Tk, KV Dk) and v (B, Tk, KV Dv): (B, Tq, H Dv). A query
// without a visible key gets 0 and passes gradient 0. mask.lengths must outlive backward().
Var attention(Columns q, Columns k, Columns v, const AttentionOptions& options);

// The same with scores (B, H, Tq, Tk) in place of q and k: what makes attention of any way to score keys.
// options.scale is not used.
Var attend(Var scores, Columns v, const AttentionOptions& options);

// The parameter of a score of heads with queries and keys of `depth` columns: a matrix W (H, Dk, Dk), a
// vector w (H, Dk), or none.
std::optional<Shape> score_parameter(Score, std::int64_t heads, std::int64_t depth);

// What a score multiplies q^T k, or q^T W k, by; nothing where it is no product of a query and a key.
std::optional<double> score_factor(Score, std::int64_t depth);

// attention() with that score. `parameter` is there where score_parameter() is.
Var scored_attention(Score, Columns q, Columns k, Columns v, std::optional<Var> parameter,
                     AttentionOptions options);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
