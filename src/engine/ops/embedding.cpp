#include "thimble/engine/ops.h"

#include "engine/kernels/embedding.h"
#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var embedding(Var table, std::span<const std::int32_t> tokens, std::int64_t length) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  require<ShapeError>(table.shape().rank() == 2, "embedding: table {} must be (vocabulary, channels)",
                      table.shape());
  require<ShapeError>(length > 0 && count % length == 0, "embedding: {} tokens are not whole sequences of {}",
                      count, length);
  const std::int64_t vocabulary = table.shape()[0];
  const auto bad = std::ranges::find_if(tokens, [=](auto token) { return token < 0 || token >= vocabulary; });
  require<ShapeError>(bad == tokens.end(), "embedding: token {} is outside the vocabulary 0 .. {}",
                      bad == tokens.end() ? 0 : *bad, vocabulary - 1);
  const auto kept = table.tape().keep(tokens);
  return record(
      "embedding", {count / length, length, table.shape()[1]}, {table},
      [=](Var y) { kernels::embedding_forward(y.value(), table.value(), kept); },
      [=](Var y) { kernels::embedding_backward(table.zeroed_grad_accumulator(), y.grad(), kept); });
}

std::vector<GradcheckCase> gradcheck_embedding() {
  static const std::vector<std::int32_t> tokens{1, 4, 4, 0, 1, 2};
  return {{"embedding", "", {normal("table", {5, 7})}, [](Tape&, Inputs in) {
             return embedding(in[0], tokens, 3);
           }}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
