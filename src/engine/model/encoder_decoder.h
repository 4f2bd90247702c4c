// The encoder-decoder Transformer (Vaswani et al. 2017).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/model/parts.h"
#include "engine/model/transformer.h"
#include "thimble/engine/model.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// A block of the decoder, as torch.nn.TransformerDecoderLayer: causal self-attention, cross-attention to the
// output of the encoder (the memory), feed-forward net; each with its residual and norm as in EncoderLayer.
// Sites: residual_mid, residual_cross and residual_out after the three, of `block`, and the sites of its
// attention.
struct DecoderLayer {
  std::string name;
  std::int32_t block;  // of the model
  MultiHeadAttention self_attn, multihead_attn;
  std::optional<FeedForward> feed_forward;
  Norm norm1, norm2;
  std::optional<Norm> norm3;  // where there is a feed_forward
  NormOrder order;
  Dropout dropout1, dropout2;

  // Makes layer `index` of the decoder.
  DecoderLayer(ParameterStore&, std::int64_t index, const ModelConfig&, std::uint32_t first_dropout_site);
  void init(ParameterStore&, std::uint64_t seed) const;
  // Returns the output for x (B, T, C) and memory (B, S, C). rows: as in EncoderLayer.
  Var operator()(Var x, std::span<const std::int32_t> lengths, Var memory,
                 std::span<const std::int32_t> source_lengths, const ForwardOptions&,
                 std::span<const std::int32_t> rows = {}) const;
  // Returns the output for one more position: x (N, 1, C) at position `at`, with the cache of
  // self_attn.decode_step() and multihead_attn.keys_values(memory).
  Var decode_step(Var x, Tensor& cache, std::int64_t at, Var keys_values,
                  std::span<const std::int32_t> source_lengths, const ForwardOptions&) const;

  static constexpr std::uint32_t kDropoutSites = 4 + FeedForward::kDropoutSites;

 private:
  // Implements both, with attend(x) for the self-attention.
  template <class Attend>
  Var run(Var x, const Attend& attend, Var keys_values, std::span<const std::int32_t> source_lengths,
          const ForwardOptions&, std::span<const std::int32_t> rows) const;
};

// An encoder-decoder Transformer. Its parameters have the names of torch.nn.Transformer:
// encoder.layers.{l}.*, decoder.layers.{l}.*, and for pre-norm encoder.norm and decoder.norm. Embeddings:
// source_token_embedding (V, C), token_embedding (V, C), and for learned positions source_position_embedding
// and position_embedding. Sites: source_embedding, embedding, encoder_output, decoder_output, logits, and the
// sites of the layers.
class EncoderDecoder final : public Model {
 public:
  EncoderDecoder(const ModelConfig&, const ModelSizes&, Storage = Storage::values);

  void init(std::uint64_t seed) override;
  Var operator()(Tape&, const ModelInput&, const ForwardOptions&) const override;
  const MultiHeadAttention* attention(const AttentionLayer&) const override;
  std::unique_ptr<DecoderState> start_decoding(const ModelInput&) const override;
  double plan_decoding(Tape&, const ModelInput&) const override;

  // Returns the memory (B, S, C) that the decoder attends to.
  Var encode(Tape&, const ModelInput&, const ForwardOptions&) const;

  std::size_t blocks() const override { return encoder_.size() + decoder_.size(); }
  Site input_site(std::size_t block) const override;
  Var from_block(std::size_t block, Var x, Var memory, const ModelInput&,
                 const ForwardOptions&) const override;

 private:
  class CachedState;

  Var encode_from(std::size_t first, Var x, const ModelInput&, const ForwardOptions&) const;
  Var decode_from(std::size_t first, Var x, Var memory, const ModelInput&, const ForwardOptions&) const;

  InputEmbedding source_, target_;
  std::vector<EncoderLayer> encoder_;
  std::optional<Norm> encoder_norm_;
  std::vector<DecoderLayer> decoder_;
  std::optional<Norm> decoder_norm_;
  OutputNet output_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
