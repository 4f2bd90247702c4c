// The Transformer encoder.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/model/parts.h"
#include "thimble/engine/model.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// A feed-forward net: linear2(f(linear1 x)), or, gated, linear2(f(linear1 x) gate x) (Shazeer 2020).
// Parameters: NAME.linear1, NAME.linear2, NAME.gate. Sites: feed_forward_input and feed_forward_output of
// `block`.
struct FeedForward {
  std::int32_t block;  // of the model
  Linear linear1, linear2;
  std::optional<Linear> gate;
  Activation activation;
  Dropout dropout_hidden, dropout_out;

  FeedForward(ParameterStore&, const std::string& name, std::int64_t block, const ModelConfig&,
              std::uint32_t first_dropout_site);
  void init(ParameterStore&, std::uint64_t seed) const;
  Var operator()(Var x, const ForwardOptions&) const;

  static constexpr std::uint32_t kDropoutSites = 2;
};

// A block of the encoder, as torch.nn.TransformerEncoderLayer. Post-norm (Vaswani et al. 2017): x = norm(x +
// f(x)); pre-norm (Xiong et al. 2020): x = x + f(norm(x)); f is attention or a convolution, then the
// feed-forward net, if there is one. Sites: residual_mid and residual_out of `block`, and the sites of its
// attention and feed-forward net.
struct EncoderLayer {
  std::string name;
  std::int32_t block;  // of the model
  std::optional<MultiHeadAttention> self_attn;
  std::optional<Convolution> conv;  // where there is no self_attn
  std::optional<FeedForward> feed_forward;
  Norm norm1;
  std::optional<Norm> norm2;  // where there is a feed_forward
  NormOrder order;
  Dropout dropout1;

  EncoderLayer(ParameterStore&, const std::string& name, std::int64_t number, const ModelConfig&,
               std::uint32_t first_dropout_site);
  void init(ParameterStore&, std::uint64_t seed) const;
  // Returns the output (B, T, C) for x (B, T, C), or, with `rows`, only these rows (R, C): then the
  // feed-forward net runs on them alone, unless it has dropout, whose draws depend on the sample.
  Var operator()(Var x, std::span<const std::int32_t> lengths, const ForwardOptions&,
                 std::span<const std::int32_t> rows = {}) const;
  // Returns the output (N, 1, C) for x (N, 1, C) at position `at`, and adds its keys and values to the cache.
  Var decode_step(Var x, Tensor& cache, std::int64_t at) const;

  static constexpr std::uint32_t kDropoutSites = 2 + FeedForward::kDropoutSites;

 private:
  template <class Mix>
  Var run(Var x, const Mix& mix, const ForwardOptions&, std::span<const std::int32_t> rows) const;
};

// Return the layers encoder.layers.{l} of an encoder, and the norm at the end of a pre-norm model.
std::vector<EncoderLayer> encoder_layers(ParameterStore&, const ModelConfig&,
                                         std::uint32_t first_dropout_site);
std::optional<Norm> final_norm(ParameterStore&, const std::string& name, const ModelConfig&);

// A Transformer encoder: token embedding, positions, encoder layers, output net. Sites: embedding,
// encoder_output, logits, and the sites of the layers.
class Transformer final : public Model {
 public:
  // Throws ShapeError as MultiHeadAttention does.
  Transformer(const ModelConfig&, const ModelSizes&, Storage = Storage::values);

  void init(std::uint64_t seed) override;
  Var operator()(Tape&, const ModelInput&, const ForwardOptions&) const override;
  // A state for each of the sequences (B, T), which has read all but their last tokens. Throws Error unless
  // self-attention is causal and there is an output per position.
  std::unique_ptr<DecoderState> start_decoding(const ModelInput&) const override;
  double plan_decoding(Tape&, const ModelInput&) const override;
  const MultiHeadAttention* attention(const AttentionLayer&) const override;

  std::size_t blocks() const override { return layers_.size(); }
  Site input_site(std::size_t block) const override;
  Var from_block(std::size_t block, Var x, Var memory, const ModelInput&,
                 const ForwardOptions&) const override;

  const std::vector<EncoderLayer>& layers() const { return layers_; }
  const std::optional<Norm>& norm() const { return norm_; }  // at the end of a pre-norm model

 private:
  class CachedState;

  void init_matrices(std::uint64_t seed);  // with init_std

  InputEmbedding input_;
  std::vector<EncoderLayer> layers_;
  std::optional<Norm> norm_;
  OutputNet output_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
