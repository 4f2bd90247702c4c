#include "engine/kernels/attention/attention_steps.h"
#include "engine/kernels/elementwise.h"
#include "engine/ops/check_lengths.h"
#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var score_product(Columns q, Columns k, std::int64_t heads, std::int64_t kv_heads, Real scale) {
  const Shape sq = q.shape(), sk = k.shape();
  require<ShapeError>(
      sq.rank() == 3 && sk.rank() == 3 && sq[0] == sk[0] && heads > 0 && kv_heads > 0 &&
          heads % kv_heads == 0 && sq[2] % heads == 0 && sk[2] == sq[2] / heads * kv_heads,
      "score_product: q {}, k {}, heads {}, kv_heads {}: q must be (batch, queries, heads D) and "
      "k (batch, keys, kv_heads D), and kv_heads must divide heads",
      sq, sk, heads, kv_heads);
  const AttentionSizes sizes{.heads = heads,
                             .kv_heads = kv_heads,
                             .d_key = sq[2] / heads,
                             .softmax = false,
                             .batch = sq[0],
                             .queries = sq[1],
                             .keys = sk[1]};
  const MatrixView scratch = q.source.tape().scratch(1, std::max(sizes.d_key, sizes.queries) * sizes.keys);
  const double flops = 2 * static_cast<double>(sq[0] * sq[1] * sq[2]) * static_cast<double>(sk[1]);
  return record(
      "score_product", {sq[0], heads, sq[1], sk[1]}, {q.source, k.source},
      [=](Var y) {
        kernels::attention_weights_forward(y.value(), q.value(), k.value(), scratch.data, sizes, {}, scale);
      },
      [=](Var y) {
        kernels::attention_scores_backward({{}, q.zeroed_grad_accumulator(), k.zeroed_grad_accumulator()},
                                           y.grad(), {q.value(), k.value(), {}}, scratch.data, sizes, scale);
      },
      {.forward = flops, .backward = 2 * flops});
}

Var mask_scores(Var scores, const kernels::AttentionMask& mask) {
  const Shape shape = scores.shape();
  require<ShapeError>(
      shape.rank() == 4 && (mask.slopes.empty() || std::ssize(mask.slopes) == shape[1]),
      "mask_scores: scores {}, {} slopes: scores must be (batch, heads, queries, keys), with a "
      "slope for each head or none",
      shape, mask.slopes.size());
  check_lengths("mask_scores", mask.lengths, shape[0], 0, shape[3]);
  const AttentionSizes sizes{
      .heads = shape[1], .kv_heads = shape[1], .batch = shape[0], .queries = shape[2], .keys = shape[3]};
  return record(
      "mask_scores", shape, {scores},
      [=](Var y) { kernels::attention_mask_forward(y.value(), scores.value(), sizes, mask); },
      [=](Var y) { kernels::accumulate(scores.grad_accumulator(), y.grad()); });
}

std::vector<GradcheckCase> gradcheck_attention_scores() {
  static const std::vector<std::int32_t> lengths{5, 3};
  static const std::vector<Real> slopes{Real(0.5), Real(0.1)};
  const auto product = [](std::int64_t heads, std::int64_t kv_heads) {
    return [=](Tape&, Inputs in) { return score_product(in[0], in[1], heads, kv_heads, Real(0.3)); };
  };
  // Through a softmax, where hidden keys have a weight of 0.
  const auto masked = [](const kernels::AttentionMask& mask) {
    return [mask](Tape&, Inputs in) { return softmax(mask_scores(in[0], mask)); };
  };
  const std::vector<GradcheckInput> scores{normal("scores", {2, 2, 5, 5})};
  return {{"score_product", "", {normal("q", {2, 5, 6}), normal("k", {2, 5, 6})}, product(2, 2)},
          {"score_product",
           "3 queries, 20 keys, 4 heads on 2",
           {normal("q", {2, 3, 12}), normal("k", {2, 20, 6})},
           product(4, 2)},
          {"score_product",
           "of itself",
           {normal("x", {2, 5, 6})},
           [](Tape&, Inputs in) { return score_product(in[0], in[0], 2, 2, Real(0.3)); }},
          {"mask_scores", "causal, padding", scores, masked({.causal = true, .lengths = lengths})},
          {"mask_scores", "ALiBi", scores, masked({.lengths = {}, .slopes = slopes})}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
