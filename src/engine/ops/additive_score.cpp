#include "engine/kernels/attention/additive_score.h"

#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

#include "engine/ops/gradcheck_inputs.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var additive_score(Columns q, Columns k, Var weight, std::int64_t heads, std::int64_t kv_heads) {
  const Shape sq = q.shape(), sk = k.shape(), w = weight.shape();
  require<ShapeError>(sq.rank() == 3 && sk.rank() == 3 && sq[0] == sk[0],
                      "additive_score: q {}, k {}: both must be (batch, time, channels) of one batch", sq,
                      sk);
  require<ShapeError>(heads > 0 && kv_heads > 0 && heads % kv_heads == 0,
                      "additive_score: kv_heads ({}) must divide heads ({})", kv_heads, heads);
  require<ShapeError>(
      w.rank() == 2 && w[0] == heads && sq[2] == heads * w[1] && sk[2] == kv_heads * w[1],
      "additive_score: q {}, k {}, weight {}, heads {}, kv_heads {}: weight must be (heads, D), q must have heads D channels and k kv_heads D channels",
      sq, sk, w, heads, kv_heads);
  const AttentionSizes sizes{
      .heads = heads, .kv_heads = kv_heads, .d_key = w[1], .batch = sq[0], .queries = sq[1], .keys = sk[1]};
  const MatrixView scratch = weight.tape().scratch(sq[1] + 2 * sk[1] + 1, w[1]);
  return record(
      "additive_score", {sq[0], heads, sq[1], sk[1]}, {q.source, k.source, weight},
      [=](Var y) {
        kernels::additive_score_forward(y.value(), q.value(), k.value(), weight.value(), scratch.data, sizes);
      },
      [=](Var y) {
        kernels::additive_score_backward(q.zeroed_grad_accumulator(), k.zeroed_grad_accumulator(),
                                         weight.zeroed_grad_accumulator(), y.grad(), q.value(), k.value(),
                                         weight.value(), scratch.data, sizes);
      });
}

std::vector<GradcheckCase> gradcheck_additive_score() {
  const auto inputs = [](std::int64_t queries, std::int64_t keys, std::int64_t heads, std::int64_t kv_heads,
                         std::int64_t d_key) {
    return std::vector{normal("q", {2, queries, heads * d_key}), normal("k", {2, keys, kv_heads * d_key}),
                       normal("weight", {heads, d_key})};
  };
  const auto score = [](std::int64_t heads, std::int64_t kv_heads) {
    return [=](Tape&, Inputs in) { return additive_score(in[0], in[1], in[2], heads, kv_heads); };
  };
  return {{"additive_score", "", inputs(5, 5, 2, 2, 3), score(2, 2)},
          {"additive_score", "3 queries, 7 keys", inputs(3, 7, 2, 2, 3), score(2, 2)},
          {"additive_score", "9 queries, 20 keys, 21 columns", inputs(9, 20, 1, 1, 21), score(1, 1)},
          {"additive_score", "4 heads share 2 of keys", inputs(5, 4, 4, 2, 3), score(4, 2)},
          {"additive_score", "one of all", inputs(1, 1, 1, 1, 1), score(1, 1)},
          {"additive_score",
           "columns of one projection",
           {normal("x", {2, 4, 10}), normal("weight", {2, 3})},
           [](Tape&, Inputs in) {
             return additive_score({in[0], 1, 6}, {in[0], 7, 3}, in[1], 2, 1);
           }},
          {"additive_score",
           "large, and canceling",
           {normal("q", {1, 3, 4}, 500), normal("k", {1, 3, 4}, -500), normal("weight", {1, 4})},
           score(1, 1)}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
