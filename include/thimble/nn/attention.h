// Attention heads with their projections.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thimble/nn/attention_config.h"
#include "thimble/nn/modules.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Multi-head attention with one matrix for the projections to queries, keys and values. With the defaults it
// is torch.nn.MultiheadAttention, names and orientation too:
//   NAME.in_proj_weight (H Dk + KV Dk + KV Dv, C), in_proj_bias: queries, keys, values; with tie_query_key
//     queries serve as keys, too;
//   NAME.score_weight: of the score, if it has a parameter, see score_parameter();
//   NAME.out_proj.weight (C, H Dv), out_proj.bias (C); with Combine::sum out_proj.{h}.weight (C, Dv), one
//   bias for all.
// Sites: attention_weights and head_output, of `layer`.
struct MultiHeadAttention {
  AttentionConfig config;
  AttentionSizes sizes;  // of the config, with defaults filled in
  // Rotary positions turn queries and keys (Su et al. 2021); ALiBi lowers scores by distance (Press et al.
  // 2022), by 2^(-8 (h + 1) / H) a position. Others change nothing here.
  Positions positions;
  std::uint32_t dropout_site;
  Parameter in_proj_weight, in_proj_bias;
  std::optional<Parameter> score_weight;
  std::vector<Parameter> out_proj_weights;  // one, or one for each head
  Parameter out_proj_bias;
  std::int32_t layer;  // number in Model::attention_layers()

  // Throws ShapeError when heads do not divide what they must, tied heads share keys, or Dk is odd for rotary
  // positions.
  MultiHeadAttention(ParameterStore&, const std::string& name, std::int64_t d_model, std::int64_t heads,
                     const AttentionConfig& = {}, Positions = Positions::none, std::uint32_t dropout_site = 0,
                     std::int64_t layer = 0);
  // The weights of projections to queries, keys and values uniform by Glorot and Bengio (2010), as one
  // matrix, biases 0: as torch.nn.MultiheadAttention.
  void init(ParameterStore&, std::uint64_t seed) const;
  // Self-attention. x (B, T, C); lengths (B) or empty.
  Var operator()(Var x, std::span<const std::int32_t> lengths, const ForwardOptions&) const;
  // Cross-attention: queries of x (B, Tq, C), keys and values of memory (B, Tk, C), whose lengths these are.
  // Throws ShapeError where a causal mask or positions would relate the two.
  Var operator()(Var x, Var memory, std::span<const std::int32_t> memory_lengths,
                 const ForwardOptions&) const;

  // The steps of these, for who keeps keys and values from one token to the next.
  struct Projected {
    Columns q, k, v;  // (B, Tq, H Dk), (B, Tk, KV Dk), (B, Tk, KV Dv)
  };
  Projected project(Var x, std::int64_t first_position = 0) const;
  Var keys_values(Var memory) const;  // keys, then values: (B, Tk, KV Dk + KV Dv)
  Projected project(Var x, Var keys_values) const;
  // Query 0 stands at key `first_query`. Returns (B, Tq, C).
  Var attend(const Projected&, std::span<const std::int32_t> lengths, std::int64_t first_query,
             const ForwardOptions&) const;

  // Causal self-attention of one more position: x (N, 1, C) at position `at`. Keys and values of positions 0
  // .. at are in, and go to, `cache` (N, positions, cache_width).
  Var decode_step(Var x, Tensor& cache, std::int64_t at, const ForwardOptions&) const;
  std::int64_t cache_width() const { return keys() + values(); }

  // One head's weights, whatever the layout; heads that share a key or value have the same views.
  struct HeadViews {
    ConstMatrixView query, key;  // (Dk, C)
    ConstMatrixView value;       // (Dv, C)
    ConstMatrixView output;      // (C, Dv)
    ConstMatrixView score;       // (Dk, Dk), of the score "general"; else no data
  };
  HeadViews head(const ParameterStore&, std::int64_t h) const;

 private:
  std::int64_t queries() const { return sizes.heads * sizes.d_key; }  // columns of all queries
  std::int64_t keys() const { return sizes.kv_heads * sizes.d_key; }
  std::int64_t values() const { return sizes.kv_heads * sizes.d_value; }
  std::int64_t first_key() const { return config.tie_query_key ? 0 : queries(); }
  std::int64_t first_value() const { return first_key() + keys(); }
  Var project_output(Var heads) const;

  std::vector<Real> slopes_;  // (H), or none
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
