// Generation: greedy decoding, beam search and sampling.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "thimble/engine/model.h"

namespace thimble {

inline constexpr std::int32_t kNoEnd = -1;  // the eos_token of a model whose outputs have no end

// A generated sequence.
struct Hypothesis {
  std::vector<std::int32_t> tokens;  // without bos_token and eos_token; max_tokens of them if it did not end
  double log_probability = 0;        // of the tokens and of eos_token, if it ended
  std::vector<double> log_probabilities{};  // whose sum it is: of each token, then of eos_token, if it ended
  bool finished = false;                    // whether it ended; otherwise max_tokens cut it
};

struct DecodingOptions {
  std::int32_t bos_token, eos_token;  // what is read first, and the end of a sequence
  std::int64_t max_tokens;            // the most that are generated, the end included
  // Called with all hypotheses after each token of theirs.
  std::function<void(std::span<const Hypothesis>)> on_token = [](std::span<const Hypothesis>) {};
};

// How a token is drawn: from softmax(logits / temperature), limited to the `top_k` most probable tokens, and
// of these to the most probable ones that first have `top_p` of their probability together (nucleus sampling;
// Holtzman et al. 2020, section 3.1). Of equally probable tokens, the smaller id comes first.
struct Sampling {
  double temperature = 1;  // above 0
  std::int64_t top_k = 0;  // 0: all
  double top_p = 1;        // above 0, at most 1
  std::uint64_t seed = 0;
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

// Returns `count` drawn sequences of a new state with as many hypotheses. Token t of sequence i depends on the
// seed, i, t and the logits alone, so that further sequences change none. The log probabilities are those of
// the model, whatever the sampling. Throws Error when the sampling is out of range.
std::vector<Hypothesis> sample(DecoderState&, std::int64_t count, const DecodingOptions&, const Sampling&);

// Returns the result of beam search (Graves 2012; Sutskever et al. 2014, section 3.2): at most `beams`
// hypotheses, most probable first, without length normalization. At each step the `beams` most probable
// continuations of all hypotheses are kept. The state is new and has one hypothesis. Throws ShapeError unless
// beams >= 1.
std::vector<Hypothesis> beam_search(DecoderState&, std::int64_t beams, const DecodingOptions&);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
