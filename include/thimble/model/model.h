// What every kind of model is to those who train it and look into it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "thimble/model/attention_layer.h"
#include "thimble/nn/attention.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The sequences of one pass; B of them. What is not given does not exist.
struct ModelInput {
  std::span<const std::int32_t> tokens;            // (B, T), row-major
  std::int64_t length = 0;                         // T
  std::span<const std::int32_t> lengths{};         // (B), of padded sequences
  std::span<const std::int32_t> sources{};         // (B, S), what an encoder-decoder translates
  std::int64_t source_length = 0;                  // S
  std::span<const std::int32_t> source_lengths{};  // (B), of padded sources
  // For models that are not per sequence: positions of the B T whose logits are wanted; nothing is computed
  // that they do not need.
  std::span<const std::int32_t> rows{};
};

class DecoderState;

class Model {
 public:
  virtual ~Model() = default;

  virtual void init(std::uint64_t seed) = 0;

  // Logits: (B, T, V), or (B, V) per sequence, or of R rows (R, V). Binds nothing: the tape must be bound to
  // parameters(). Throws ShapeError when a sequence is longer than the model takes.
  virtual Var operator()(Tape&, const ModelInput&, const ForwardOptions&) const = 0;

  // The start of writing an answer to each of the sources. Throws Error for a model that does not write.
  virtual std::unique_ptr<DecoderState> decode(const ModelInput& sources) const;

  // Records on a planning tape what decode() computes first, and returns how many numbers greedy decoding
  // keeps outside of its tape; 0 for a model that does not write.
  virtual double plan_decoding(Tape&, const ModelInput& sources) const;

  // Blocks that a pass can start at: the encoder's, then the decoder's; 0: it cannot, as that of a recurrent
  // model.
  virtual std::size_t blocks() const { return 0; }
  // The site of a block's input: (B, S, C) for the encoder of an encoder-decoder, else (B, T, C).
  virtual Site input_site(std::size_t block) const;
  // The logits from the input of that block on. A decoder takes the encoder's output (B, S, C), too, of which
  // a pass that starts in the encoder has none yet.
  virtual Var from_block(std::size_t block, Var input, Var memory, const ModelInput&,
                         const ForwardOptions&) const;

  const std::vector<AttentionLayer>& attention_layers() const { return attention_layers_; }
  // The parameters of one of them; null where it has no projections of its own.
  virtual const MultiHeadAttention* attention(const AttentionLayer&) const { return nullptr; }

  ParameterStore& parameters() { return store_; }
  const ParameterStore& parameters() const { return store_; }
  const ModelConfig& config() const { return config_; }
  std::int64_t vocabulary() const { return sizes_.vocabulary; }
  std::int64_t max_length() const { return sizes_.length; }

 protected:
  // A max_length of the config is the T of the model.
  Model(const ModelConfig& config, const ModelSizes& sizes, Storage storage);
  Model(Model&&) = default;

  ModelConfig config_;
  ModelSizes sizes_;
  ParameterStore store_;

 private:
  std::vector<AttentionLayer> attention_layers_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
