// A recurrent encoder-decoder: a bidirectional GRU reads the source, a GRU writes the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thimble/model/model.h"
#include "thimble/nn/gru.h"
#include "thimble/nn/modules.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Embeddings and states have the config's C = d_model channels; half of them for each direction of the
// encoder. How the decoder compares itself with the source is the score. None: not at all, it knows what its
// first state holds (Cho et al. 2014). Additive: the state before a step asks, and what it sees enters the
// GRU beside the embedding (Bahdanau et al. 2015); the others: the state after the step asks (Luong et al.
// 2015). The config's layers and heads are 1, their default. Dropout is that of embeddings and of the
// decoder's output.
//
// Parameters: source_token_embedding.weight and token_embedding.weight (V, C); encoder.gru.* (C to C / 2,
// both directions) and decoder.gru.* (C to C; additive: 2C to C) as torch.nn.GRU has them; decoder.initial.*
// (C, C), from the encoder's last states to the decoder's first: tanh(W h + b);
//   additive: decoder.attention.query.* and .key.* (C, C), decoder.attention.score_weight (1, C);
//   general: decoder.attention.score_weight (1, C, C);
//   with attention: decoder.attention.combine.* (C, 2C), for the output tanh(W [what is seen; state] + b) of
//   each step (Luong et al. 2015, equation 5; in place of Bahdanau's maxout too), without: the state itself;
// output.* (V, C).
// Sites: source_embedding, encoder_output, embedding, attention_weights (B, 1, T, S) and head_output (B, T,
// C), decoder_output, logits. Additive attention comes to its two sites at every position, (B, 1, 1, S) and
// (B, 1, C).
class Recurrent final : public Model {
 public:
  // Throws ShapeError on an odd number of channels.
  Recurrent(const ModelConfig&, const ModelSizes&, Storage = Storage::values);

  // PyTorch's defaults; embeddings normal.
  void init(std::uint64_t seed) override;
  Var operator()(Tape&, const ModelInput&, const ForwardOptions&) const override;
  std::unique_ptr<DecoderState> decode(const ModelInput&) const override;
  double plan_decoding(Tape&, const ModelInput&) const override;

  // What the decoder knows of the sources.
  struct Memory {
    Var states;                             // (B, S, C)
    Var keys;                               // what queries are compared with: (B, S, C)
    std::span<const std::int32_t> lengths;  // (B), or empty: all S; as long as the tape
    Var first;                              // the decoder's first state (B, C)
  };
  // Of the input's sources.
  Memory read(Tape&, const ModelInput&, const ForwardOptions&) const;

  struct Written {
    Var logits;  // (B, T, V), or of R rows (R, V)
    Var state;   // (B, C) after the last token, to go on from
  };
  // Goes on from a state (B, C) with tokens (B, T) row-major, T = length, of which the first is number
  // `first` of the answer; logits say what follows each. With `rows`, logits of these of the B T positions.
  // Throws ShapeError when the answer is longer than the model takes.
  Written write(const Memory&, Var state, std::span<const std::int32_t> tokens, std::int64_t length,
                const ForwardOptions&, std::span<const std::int32_t> rows = {}, std::int64_t first = 0) const;

 private:
  class RecurrentState;

  struct Steps {
    Var outputs;  // (B, T, C)
    Var state;    // (B, C)
  };
  Steps run(const Memory&, Var state, Var x, const ForwardOptions&) const;
  Steps run_additive(const Memory&, Var state, Var x, const ForwardOptions&, std::int64_t first) const;
  Var look(const Memory&, Var states, const ForwardOptions&, std::int64_t position) const;
  Var combine(Var seen, Var states) const;
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
