// Generation: greedy decoding and beam search.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "thimble/engine/model.h"

namespace thimble {

struct DecodingOptions {
  std::int32_t bos_token, eos_token;       // beginning and end of a sequence
  std::int64_t max_tokens;                 // the most that are generated, the end included
  std::function<void()> on_token = [] {};  // called after each token of all hypotheses
};

// A generated sequence.
struct Hypothesis {
  std::vector<std::int32_t> tokens;  // without bos_token and eos_token; max_tokens of them if it did not end
  double log_probability = 0;        // of the tokens and of eos_token, if it ended
  bool finished = false;             // whether it ended; otherwise max_tokens cut it
};

inline namespace THIMBLE_PRECISION {

// Returns the log softmax of a row of logits (N, V). Throws NumericError when a logit is not finite.
std::vector<double> log_probabilities(ConstMatrixView logits, std::int64_t row);

// The state of a decoder after N hypotheses. It caches the computations of earlier tokens, so that a step
// costs one token. Its logits equal those of the full forward pass over the same tokens.
class DecoderState {
 public:
  virtual ~DecoderState() = default;

  // Appends one of the tokens (N) to each hypothesis, and returns the logits (N, V) of the next one. Throws
  // ShapeError when there are more tokens than the model accepts.
  virtual Tensor next(std::span<const std::int32_t> tokens) = 0;

  // Replaces the hypotheses: new hypothesis i continues hypothesis from[i].
  virtual void reorder(std::span<const std::int32_t> from) = 0;
};

// Returns the result of greedy decoding for each of the `count` hypotheses of a new state.
std::vector<Hypothesis> greedy_decode(DecoderState&, std::int64_t count, const DecodingOptions&);

// Returns the result of beam search (Graves 2012; Sutskever et al. 2014, section 3.2): at most `beams`
// hypotheses, most probable first, without length normalization. At each step the `beams` most probable
// continuations of all hypotheses are kept. The state is new and has one hypothesis. Throws ShapeError unless
// beams >= 1.
std::vector<Hypothesis> beam_search(DecoderState&, std::int64_t beams, const DecodingOptions&);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
