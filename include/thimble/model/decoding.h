// Writing with a model: hypotheses that grow token by token, and two ways to choose among them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "thimble/model/model.h"

namespace thimble {

// How an answer begins and ends, and how many tokens are written at most, the end included.
struct DecodingOptions {
  std::int32_t begin, end;
  std::int64_t longest;
};

struct Hypothesis {
  std::vector<std::int32_t> tokens;  // without the marks; as many as the longest when it did not end
  double log_probability = 0;        // of all that was written
};

}  // namespace thimble

namespace thimble {
inline namespace THIMBLE_PRECISION {

// What a model has read so far, of N hypotheses side by side. It keeps what it made of earlier tokens, so
// that a step costs one token. Logits are those of the full forward pass over the same tokens.
class DecoderState {
 public:
  virtual ~DecoderState() = default;

  // tokens (N), the next one of each hypothesis: the logits (N, V) of what follows. Throws ShapeError when
  // there are more tokens than the model takes.
  virtual Tensor next(std::span<const std::int32_t> tokens) = 0;

  // From now on hypothesis i goes on from what hypothesis from[i] has read; as many as `from` has.
  virtual void reorder(std::span<const std::int32_t> from) = 0;
};

// The likeliest token again and again, for each of the N hypotheses that have read nothing yet.
std::vector<Hypothesis> greedy_decode(DecoderState&, std::int64_t hypotheses, const DecodingOptions&);

// Beam search (Graves 2012; Sutskever et al. 2014, section 3.2): at each step the `beams` likeliest
// continuations of all hypotheses go on. The likeliest answers, best first, at most `beams`; probabilities
// are not divided by lengths. The decoding has one hypothesis that has read nothing yet. Throws ShapeError
// unless beams >= 1.
std::vector<Hypothesis> beam_search(DecoderState&, std::int64_t beams, const DecodingOptions&);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
