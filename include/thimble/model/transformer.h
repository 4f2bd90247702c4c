// The transformer encoder that configs describe: token embedding, positions, encoder layers, output net.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "thimble/model/model.h"
#include "thimble/model/parts.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The norms that layers are made of.
struct Norm {
  std::variant<LayerNorm, RmsNorm> kind;

  Norm(ParameterStore&, const std::string& name, const ModelConfig&);
  void init(ParameterStore&) const;
  Var operator()(Var x) const;
};

// linear2(f(linear1 x)), or, gated, linear2(f(linear1 x) gate x) (Shazeer 2020). Parameters: NAME.linear1,
// NAME.linear2, NAME.gate.
struct FeedForward {
  Linear linear1, linear2;
  std::optional<Linear> gate;
  Activation activation;
  Dropout dropout_hidden, dropout_out;

  FeedForward(ParameterStore&, const std::string& name, const ModelConfig&, std::uint32_t first_dropout_site);
  void init(ParameterStore&, std::uint64_t seed) const;
  Var operator()(Var x, const ForwardOptions&) const;

  static constexpr std::uint32_t kDropoutSites = 2;
};

// One block, as torch.nn.TransformerEncoderLayer. Post-norm (Vaswani et al. 2017): x = norm(x + f(x));
// pre-norm (Xiong et al. 2020): x = x + f(norm(x)); f is attention, or a convolution in its place, then the
// feed-forward net, if there is one. Sites: residual_mid and residual_out of `block`, and those of its
// attention.
struct EncoderLayer {
  std::string name;
  std::int32_t block;  // of the model
  std::optional<MultiHeadAttention> self_attn;
  std::optional<Convolution> conv;  // where there is no self_attn
  std::optional<FeedForward> feed_forward;
  Norm norm1;
  std::optional<Norm> norm2;  // beside feed_forward
  NormOrder order;
  Dropout dropout1;

  EncoderLayer(ParameterStore&, const std::string& name, std::int64_t block, const ModelConfig&,
               std::uint32_t first_dropout_site);
  void init(ParameterStore&, std::uint64_t seed) const;
  // x (B, T, C). With `rows`, only these leave the layer: (R, C), and what follows attention is computed for
  // them alone, unless it has dropout, whose draws go by sample.
  Var operator()(Var x, std::span<const std::int32_t> lengths, const ForwardOptions&,
                 std::span<const std::int32_t> rows = {}) const;

  static constexpr std::uint32_t kDropoutSites = 2 + FeedForward::kDropoutSites;

 private:
  Var mix(Var x, std::span<const std::int32_t> lengths, const ForwardOptions&) const;
};

// What encoders are made of: layers called encoder.layers.{l}, and the norm that pre-norm models end with.
std::vector<EncoderLayer> encoder_layers(ParameterStore&, const ModelConfig&,
                                         std::uint32_t first_dropout_site);
std::optional<Norm> final_norm(ParameterStore&, const std::string& name, const ModelConfig&);

// Sites: embedding, those of the layers, encoder_output and logits.
class Transformer final : public Model {
 public:
  // Throws ShapeError as MultiHeadAttention does.
  Transformer(const ModelConfig&, const ModelSizes&, Storage = Storage::values);

  void init(std::uint64_t seed) override;
  Var operator()(Tape&, const ModelInput&, const ForwardOptions&) const override;
  const MultiHeadAttention* attention(const AttentionLayer&) const override;

  std::size_t blocks() const override { return layers_.size(); }
  Site input_site(std::size_t block) const override;
  Var from_block(std::size_t block, Var input, Var memory, const ModelInput&,
                 const ForwardOptions&) const override;

 private:
  InputEmbedding input_;
  std::vector<EncoderLayer> layers_;
  std::optional<Norm> norm_;
  OutputNet output_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
