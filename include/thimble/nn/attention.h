// Attention heads with their projections.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thimble/nn/modules.h"

namespace thimble::inline THIMBLE_PRECISION {

struct AttentionSettings {
  std::int64_t channels = 1;  // C
  std::int64_t heads = 1;     // H
  std::int64_t kv_heads = 0;  // KV, of keys and values, each for H / KV heads; 0: H
  std::int64_t depth = 0;     // Dk, of queries and keys; 0: C / H
  std::int64_t width = 0;     // Dv, of values; 0: C / H
  bool tied = false;          // one projection for queries and keys; needs KV = H
  bool summed = false;        // each head has an output projection of its own, and these are added up
  Score score = Score::scaled_dot;
  bool causal = false;
  bool rotary = false;   // positions turn queries and keys (Su et al. 2021); needs an even Dk
  bool alibi = false;    // distance lowers scores (Press et al. 2022), by 2^(-8 (h + 1) / H) a position
  Dropout dropout = {};  // of the weights
};

// Multi-head attention with one matrix for the projections to queries, keys and values. With the defaults it
// is torch.nn.MultiheadAttention, names and orientation too:
//   NAME.in_proj_weight (H Dk + KV Dk + KV Dv, C), in_proj_bias: queries, keys, values; tied: the first serve
//   as
//     the second, too;
//   NAME.score_weight: of the score, if it has a parameter, see score_parameter();
//   NAME.out_proj.weight (C, H Dv), out_proj.bias (C); summed: out_proj.{h}.weight (C, Dv), one bias for all.
// Sites: attention_weights and head_output, of `layer`.
struct MultiHeadAttention {
  AttentionSettings settings;  // without zeros: the defaults filled in
  Parameter in_proj_weight, in_proj_bias;
  std::optional<Parameter> score_weight;
  std::vector<Parameter> out_proj_weights;  // one, or one for each head
  Parameter out_proj_bias;
  std::int32_t layer;  // number in Model::attention_layers()

  // Throws ShapeError when heads do not divide what they must, tied heads share keys, or Dk is odd for rotary
  // positions.
  MultiHeadAttention(ParameterStore&, const std::string& name, const AttentionSettings&,
                     std::int64_t layer = 0);
  // The weights of projections to queries, keys and values uniform by Glorot and Bengio (2010), as one
  // matrix, biases 0: as torch.nn.MultiheadAttention.
  void init(ParameterStore&, std::uint64_t seed) const;
  // Self-attention. x (B, T, C); lengths (B) or empty.
  Var operator()(Var x, std::span<const std::int32_t> lengths, const Pass&) const;
  // Cross-attention: queries of x (B, Tq, C), keys and values of memory (B, Tk, C), whose lengths these are.
  // Throws ShapeError where a causal mask or positions would relate the two.
  Var operator()(Var x, Var memory, std::span<const std::int32_t> memory_lengths, const Pass&) const;

  // The steps of these, for who keeps keys and values from one token to the next.
  struct Projected {
    Columns q, k, v;  // (B, Tq, H Dk), (B, Tk, KV Dk), (B, Tk, KV Dv)
  };
  Projected project(Var x, std::int64_t first_position = 0) const;
  Var keys_values(Var memory) const;  // keys, then values: (B, Tk, KV Dk + KV Dv)
  Projected project(Var x, Var keys_values) const;
  // Query 0 stands at key `first_query`. Returns (B, Tq, C).
  Var attend(const Projected&, std::span<const std::int32_t> lengths, std::int64_t first_query,
             const Pass&) const;

  // Causal self-attention of one more position: x (N, 1, C) at position `at`. Keys and values of positions 0
  // .. at are in, and go to, `cache` (N, positions, cache_width).
  Var extend(Var x, Tensor& cache, std::int64_t at, const Pass&) const;
  std::int64_t cache_width() const { return keys() + values(); }

  std::int64_t heads() const { return settings.heads; }
  std::int64_t width() const { return settings.width; }  // columns of a head in NAME.head_output

  // One head's weights, whatever the layout; heads that share a key or value have the same views.
  struct HeadViews {
    ConstMatrixView query, key;  // (Dk, C)
    ConstMatrixView value;       // (Dv, C)
    ConstMatrixView output;      // (C, Dv)
    ConstMatrixView score;       // (Dk, Dk), of the score "general"; else no data
  };
  HeadViews head(const ParameterStore&, std::int64_t h) const;

 private:
  std::int64_t queries() const { return settings.heads * settings.depth; }  // columns of all queries
  std::int64_t keys() const { return settings.kv_heads * settings.depth; }
  std::int64_t values() const { return settings.kv_heads * settings.width; }
  std::int64_t first_key() const { return settings.tied ? 0 : queries(); }
  std::int64_t first_value() const { return first_key() + keys(); }
  Var project_output(Var heads) const;

  std::vector<Real> slopes_;  // (H), or none
};

}  // namespace thimble::inline THIMBLE_PRECISION
