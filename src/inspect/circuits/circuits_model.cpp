#include "thimble/inspect/circuits.h"

#include "inspect/circuits/weights.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// The embedding and unembedding of an encoder-only model.
struct TokenSpace {
  explicit TokenSpace(const Model& model)
      : embedding(in_double(model.parameters(), "token_embedding.weight")) {
    if (model.config().output.hidden == 0) unembedding = output_weight(model);
  }
  DoubleMatrix embedding;
  std::optional<DoubleMatrix> unembedding;
};

}  // namespace

std::vector<HeadCircuits> head_circuits(const Model& model) {
  const ParameterStore& store = model.parameters();
  std::optional<TokenSpace> space;
  if (model.config().kind == ModelKind::encoder) space.emplace(model);
  std::vector<HeadCircuits> circuits;
  for (const AttentionLayer& layer : model.attention_layers()) {
    const MultiHeadAttention* attention = model.attention(layer);
    if (attention == nullptr) {
      circuits.push_back(
          no_circuits("recurrent: the head has no projections, and its output goes through the cell"));
      continue;
    }
    for (std::int64_t h = 0; h < layer.heads; ++h) {
      const MultiHeadAttention::HeadViews views = attention->head(store, h);
      HeadWeights head{.query = in_double(views.query),
                       .key = in_double(views.key),
                       .value = in_double(views.value),
                       .output = in_double(views.output),
                       .scale = score_factor(attention->config.score, attention->sizes.d_key)};
      // q^T W k is the dot product of W^T q and k.
      if (views.score.data != nullptr) head.query = matmul(transposed(in_double(views.score)), head.query);
      circuits.push_back(
          space ? head_circuits(head, space->embedding, space->unembedding ? &*space->unembedding : nullptr)
                : head_circuits(head, layer.cross()));
    }
  }
  return circuits;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
