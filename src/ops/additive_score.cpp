#include "thimble/kernels/additive_score.h"

#include "thimble/core/error.h"
#include "thimble/ops/ops.h"

namespace thimble::inline THIMBLE_PRECISION {

Var additive_score(Columns q, Columns k, Var weight, std::int64_t heads, std::int64_t kv_heads) {
  const Shape sq = q.shape(), sk = k.shape(), w = weight.shape();
  require<ShapeError>(sq.rank() == 3 && sk.rank() == 3 && sq[0] == sk[0],
                      "additive_score: q {}, k {}: both must be (batch, time, channels) of one batch", sq,
                      sk);
  require<ShapeError>(heads > 0 && kv_heads > 0 && heads % kv_heads == 0,
                      "additive_score: {} heads, {} of keys: these must divide those", heads, kv_heads);
  require<ShapeError>(
      w.rank() == 2 && w[0] == heads && sq[2] == heads * w[1] && sk[2] == kv_heads * w[1],
      "additive_score: q {}, k {}, weight {}, {} heads, {} of keys: weight must be (heads, D), q "
      "have heads D channels, and k D for each of its heads",
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

}  // namespace thimble::inline THIMBLE_PRECISION
