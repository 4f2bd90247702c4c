#include "thimble/inspect/circuits.h"

#include "inspect/weights.h"

namespace thimble::inline THIMBLE_PRECISION {

std::vector<HeadCircuits> head_circuits(const Model& model) {
  const ParameterStore& store = model.parameters();
  const DoubleMatrix embedding = in_double(store, "token_embedding.weight");
  std::optional<DoubleMatrix> unembedding;
  if (model.config().output.hidden == 0) unembedding = in_double(store, "output.weight");
  std::vector<HeadCircuits> circuits;
  for (const AttentionPlace& place : model.attentions()) {
    const MultiHeadAttention& attention = *place.attention;
    for (std::int64_t h = 0; h < attention.heads(); ++h) {
      const MultiHeadAttention::HeadViews views = attention.head(store, h);
      HeadWeights head{.query = in_double(views.query),
                       .key = in_double(views.key),
                       .value = in_double(views.value),
                       .output = in_double(views.output),
                       .scale = score_factor(attention.settings.score, attention.settings.depth)};
      // q^T W k is the dot product of W^T q and k.
      if (views.score.data != nullptr) head.query = product(transposed(in_double(views.score)), head.query);
      circuits.push_back(head_circuits(head, embedding, unembedding ? &*unembedding : nullptr));
    }
  }
  return circuits;
}

}  // namespace thimble::inline THIMBLE_PRECISION
