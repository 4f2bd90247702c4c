#include "thimble/inspect/circuits.h"

#include "inspect/weights.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

DoubleMatrix rows_of(const DoubleMatrix& m, std::int64_t first, std::int64_t count) {
  DoubleMatrix block(count, m.cols);
  std::copy_n(m.row(first), count * m.cols, block.values.begin());
  return block;
}

}  // namespace

std::vector<HeadCircuits> head_circuits(const Transformer& model) {
  const ParameterStore& store = model.parameters();
  const std::int64_t channels = model.config().d_model, heads = model.config().heads, size = channels / heads;
  const DoubleMatrix embedding = in_double(store, "token_embedding.weight");
  std::optional<DoubleMatrix> unembedding;
  if (model.config().output.hidden == 0) unembedding = in_double(store, "output.weight");
  std::vector<HeadCircuits> circuits;
  for (const EncoderLayer& layer : model.layers()) {
    const DoubleMatrix in = in_double(store, layer.self_attn.in_proj_weight);
    const DoubleMatrix out = transposed(in_double(store, layer.self_attn.out_proj.weight));
    for (std::int64_t h = 0; h < heads; ++h) {
      const HeadWeights head{.query = rows_of(in, h * size, size),
                             .key = rows_of(in, channels + h * size, size),
                             .value = rows_of(in, 2 * channels + h * size, size),
                             .output = transposed(rows_of(out, h * size, size))};
      circuits.push_back(head_circuits(head, embedding, unembedding ? &*unembedding : nullptr));
    }
  }
  return circuits;
}

}  // namespace thimble::inline THIMBLE_PRECISION
