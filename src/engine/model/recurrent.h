// The recurrent encoder-decoder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thimble/engine/gru.h"
#include "thimble/engine/model.h"
#include "thimble/engine/modules.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// A recurrent encoder-decoder: a bidirectional GRU encodes the source, a GRU decodes. Embeddings and states
// have C = d_model channels, half of them for each direction of the encoder. The score selects the attention
// of the decoder:
//   none       no attention: only the initial state depends on the source (Cho et al. 2014)
//   additive   the state before a step is the query, and the context is an input of the GRU, beside the
//              embedding (Bahdanau et al. 2015)
//   others     the state after a step is the query (Luong et al. 2015)
// Layers and heads are 1, their defaults. Dropout is applied to embeddings and to the output of the decoder.
//
// Parameters: source_token_embedding.weight and token_embedding.weight (V, C); encoder.gru.* (C to C / 2,
// both directions) and decoder.gru.* (C to C; additive: 2C to C) with the names of torch.nn.GRU;
// decoder.initial.* (C, C), for the initial state tanh(W h + b) of the decoder from the last states h of the
// encoder;
//   additive: decoder.attention.query.* and .key.* (C, C), decoder.attention.score_weight (1, C);
//   general: decoder.attention.score_weight (1, C, C);
//   with attention: decoder.attention.combine.* (C, 2C), for the output tanh(W [context; state] + b) of each
//     step (Luong et al. 2015, equation 5; in place of Bahdanau's maxout too), which else is the state;
// output.* (V, C). Sites: source_embedding, encoder_output, embedding, attention_weights (B, 1, T, S),
// head_output (B, T, C), decoder_output, logits. Additive attention visits its two sites once for each
// position, with (B, 1, 1, S) and (B, 1, C).
class Recurrent final : public Model {
 public:
  // Throws ShapeError for an odd d_model.
  Recurrent(const ModelConfig&, const ModelSizes&, Storage = Storage::values);

  // Sets PyTorch's initial values.
  void init(std::uint64_t seed) override;
  Var operator()(Tape&, const ModelInput&, const ForwardOptions&) const override;
  std::unique_ptr<DecoderState> start_decoding(const ModelInput&) const override;
  double plan_decoding(Tape&, const ModelInput&) const override;

  // The encoded sources.
  struct Memory {
    Var states;                             // (B, S, C)
    Var keys;                               // (B, S, C)
    std::span<const std::int32_t> lengths;  // (B), or empty: all S; must live as long as the tape
    Var initial_state;                      // (B, C), of the decoder
  };
  // Encodes the sources of the input.
  Memory encode(Tape&, const ModelInput&, const ForwardOptions&) const;

  // The result of decode().
  struct DecoderOutput {
    Var logits;  // (B, T, V), or of R rows (R, V)
    Var state;   // (B, C) after the last token
  };
  // Decodes tokens (B, T), row-major, T = length, at positions `first` and on, from a state (B, C). The
  // logits are those of the next token of each position, or, with `rows`, of these of the B T positions.
  // Throws ShapeError when the sequence is longer than the model accepts.
  DecoderOutput decode(const Memory&, Var state, std::span<const std::int32_t> tokens, std::int64_t length,
                       const ForwardOptions&, std::span<const std::int32_t> rows = {},
                       std::int64_t first = 0) const;

 private:
  class RecurrentState;

  struct Steps {
    Var outputs;  // (B, T, C)
    Var state;    // (B, C)
  };
  Steps run(const Memory&, Var state, Var x, const ForwardOptions&) const;
  Steps run_additive(const Memory&, Var state, Var x, const ForwardOptions&, std::int64_t first) const;
  Var attend(const Memory&, Var states, const ForwardOptions&, std::int64_t position) const;
  Var combine(Var context, Var states) const;
  Score score() const { return config_.attention.score; }
  Dropout dropout(std::uint32_t site) const { return {static_cast<Real>(config_.dropout), site}; }

  Embedding source_embedding_, embedding_;
  Gru encoder_;
  Linear initial_;
  Gru decoder_;
  std::optional<Linear> query_, key_;
  std::optional<Parameter> score_weight_;
  std::optional<Linear> combine_, output_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
