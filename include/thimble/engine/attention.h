// Attention heads with their projections.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thimble/engine/attention_config.h"
#include "thimble/engine/modules.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Multi-head attention with one matrix for the projections to queries, keys and values. With the defaults it
// is torch.nn.MultiheadAttention, with its names and orientation:
//   NAME.in_proj_weight (H Dk + KV Dk + KV Dv, C), NAME.in_proj_bias: queries, keys, values; with
//     tie_query_key the queries are the keys; absent without in_proj;
//   NAME.score_weight: the parameter of the score, if it has one, see score_parameter();
//   NAME.out_proj.weight (C, H Dv), NAME.out_proj.bias (C); with Combine::sum NAME.out_proj.{h}.weight
//     (C, Dv) and one bias.
// Sites: projections (of self-attention), attention_weights and head_output, of `layer`.
struct MultiHeadAttention {
  AttentionConfig config;
  AttentionSizes sizes;  // of the config, with defaults filled in
  // Rotary positions rotate queries and keys (Su et al. 2021) as config.rotary says. ALiBi (Press et al. 2022)
  // subtracts from a score 2^(-8 (h + 1) / H) times the distance, also where H is no power of two, for which
  // its authors' code has other slopes. The others have no effect here.
  Positions positions;
  std::uint32_t dropout_site;
  Parameter in_proj_weight;               // no tensor without in_proj
  std::optional<Parameter> in_proj_bias;  // none without in_proj, or without biases
  std::optional<Parameter> score_weight;
  std::vector<Parameter> out_proj_weights;  // one, or one for each head
  std::optional<Parameter> out_proj_bias;   // none without biases
  std::int32_t layer;                       // index in Model::attention_layers()

  // Throws ShapeError when the sizes of the heads do not fit each other, with tie_query_key and kv_heads <
  // heads, for rotary positions with an odd Dk, and without in_proj for sizes that require projections.
  MultiHeadAttention(ParameterStore&, const std::string& name, std::int64_t d_model, std::int64_t heads,
                     const AttentionConfig& = {}, Positions = Positions::none, std::uint32_t dropout_site = 0,
                     std::int64_t layer = 0, bool has_bias = true);
  // Sets the initial values of torch.nn.MultiheadAttention: in_proj_weight uniform by Glorot and Bengio
  // (2010), as one matrix, or normal with in_proj_std, out_proj uniform in +-1 / sqrt(H Dv), biases 0.
  // score_weight is uniform in +-1 / sqrt(Dk).
  void init(ParameterStore&, std::uint64_t seed) const;
  // Returns self-attention (B, T, C) of x (B, T, C); lengths (B) or empty.
  Var operator()(Var x, std::span<const std::int32_t> lengths, const ForwardOptions&) const;
  // Returns cross-attention (B, Tq, C) from x (B, Tq, C) to memory (B, Tk, C), of which memory_lengths (B)
  // positions count. Throws ShapeError with a causal mask, rotary positions or ALiBi.
  Var operator()(Var x, Var memory, std::span<const std::int32_t> memory_lengths,
                 const ForwardOptions&) const;

  // The projections of the inputs of attend().
  struct Projected {
    Columns q, k, v;  // (B, Tq, H Dk), (B, Tk, KV Dk), (B, Tk, KV Dv)
  };
  // Return the projections of self-attention, and of cross-attention to given keys_values().
  Projected project(Var x, std::int64_t first_position = 0, Hooks* hooks = nullptr) const;
  Projected project(Var x, Var kv, Hooks* hooks = nullptr) const;
  Var keys_values(
      Var memory) const;  // returns keys, then values: (B, Tk, KV Dk + KV Dv); memory without in_proj
  // Returns attention (B, Tq, C), with query 0 at the position of key `first_query`.
  Var attend(const Projected&, std::span<const std::int32_t> lengths, std::int64_t first_query,
             const ForwardOptions&) const;

  // Returns causal self-attention of one more position: x (N, 1, C) at position `at`. `cache` (N, positions,
  // cache_width) has the keys and values of positions 0 .. at-1; adds those of `at`.
  Var decode_step(Var x, Tensor& cache, std::int64_t at, const ForwardOptions&) const;
  std::int64_t cache_width() const { return keys() + values(); }

  // The weights of one head, whatever the layout; heads that share keys and values have the same views of
  // them.
  struct HeadViews {
    ConstMatrixView query, key;  // (Dk, C)
    ConstMatrixView value;       // (Dv, C)
    ConstMatrixView output;      // (C, Dv)
    ConstMatrixView score;       // (Dk, Dk), of Score::general; else without data
  };
  HeadViews head(const ParameterStore&, std::int64_t h) const;

 private:
  std::int64_t queries() const { return sizes.heads * sizes.d_key; }  // columns of all queries
  std::int64_t keys() const { return sizes.kv_heads * sizes.d_key; }
  std::int64_t values() const { return sizes.kv_heads * sizes.d_value; }
  std::int64_t first_key() const { return config.tie_query_key || !config.in_proj ? 0 : queries(); }
  std::int64_t first_value() const { return config.in_proj ? first_key() + keys() : 0; }
  Var project_output(Var heads) const;

  std::vector<Real> slopes_;    // (H), or none
  std::vector<Real> identity_;  // (C, C), the projections without in_proj
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
