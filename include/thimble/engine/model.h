// The interface of all models.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "thimble/engine/attention.h"
#include "thimble/engine/attention_layer.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The B sequences of one forward pass. Empty spans are absent.
struct ModelInput {
  std::span<const std::int32_t> tokens;            // (B, T), row-major
  std::int64_t length = 0;                         // T
  std::span<const std::int32_t> lengths{};         // (B), of padded sequences
  std::span<const std::int32_t> sources{};         // (B, S), the inputs of an encoder
  std::int64_t source_length = 0;                  // S
  std::span<const std::int32_t> source_lengths{};  // (B), of padded sources
  // For models that are not per sequence: the positions of the B T whose logits are returned, so that others
  // are not computed.
  std::span<const std::int32_t> rows{};
};

class DecoderState;

// A model: its config, its parameters and its forward pass.
class Model {
 public:
  virtual ~Model() = default;

  virtual void init(std::uint64_t seed) = 0;

  // Returns the logits: (B, T, V), or (B, V) per sequence, or of R rows (R, V). The tape must be bound to
  // parameters(). Throws ShapeError when a sequence is longer than the model accepts.
  virtual Var operator()(Tape&, const ModelInput&, const ForwardOptions&) const = 0;

  // Returns a decoder state with one hypothesis for each of the sources; for an encoder, for each of the
  // sequences of tokens (B, T), of which it has read all but the last. Throws Error for an encoder that is not
  // causal, or has no output per position.
  virtual std::unique_ptr<DecoderState> start_decoding(const ModelInput&) const = 0;

  // Records start_decoding() on a planning tape, and returns the number of elements that a decoder state
  // stores outside of its tape.
  virtual double plan_decoding(Tape&, const ModelInput&) const = 0;

  // Returns the number of blocks that from_block() can start at: those of the encoder, then those of the
  // decoder; 0 for a recurrent model.
  virtual std::size_t blocks() const { return 0; }
  // Returns the site of a block's input: (B, S, C) for the encoder of an encoder-decoder, else (B, T, C).
  virtual Site input_site(std::size_t block) const;
  // Returns the logits from the input of that block on; blocks() is the final norm and the output alone. A
  // block of a decoder also requires the memory (B, S, C), the output of the encoder.
  virtual Var from_block(std::size_t block, Var input, Var memory, const ModelInput&,
                         const ForwardOptions&) const;

  const std::vector<AttentionLayer>& attention_layers() const { return attention_layers_; }
  // Returns the module of an attention layer; null in a recurrent model.
  virtual const MultiHeadAttention* attention(const AttentionLayer&) const { return nullptr; }

  ParameterStore& parameters() { return store_; }
  const ParameterStore& parameters() const { return store_; }
  const ModelConfig& config() const { return config_; }
  std::int64_t vocabulary() const { return sizes_.vocabulary; }
  std::int64_t outputs() const { return sizes_.outputs > 0 ? sizes_.outputs : sizes_.vocabulary; }
  std::int64_t max_length() const { return sizes_.length; }
  std::int64_t max_source_length() const { return sizes_.source_length; }  // 0: it reads no source

 protected:
  // Uses max_length of the config, if any, as T.
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
