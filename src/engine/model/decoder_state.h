// Functions for decoder states, which store tensors outside of the tape.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "thimble/engine/error.h"
#include "thimble/engine/tape.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Returns a copy of the value.
inline Tensor detach(Var x) {
  const ConstMatrixView value = x.value();
  return Tensor(x.shape(), std::span(value.data, static_cast<std::size_t>(value.elements())));
}

// Returns rows from[i] of all (N, C) or (N, T, C).
inline Tensor gather_rows(const Tensor& all, std::span<const std::int32_t> from) {
  const Shape& shape = all.shape();
  const std::int64_t count = std::ssize(from), block = shape.elements() / shape[0];
  Tensor chosen(shape.rank() == 2 ? Shape{count, shape[1]} : Shape{count, shape[1], shape[2]});
  for (std::size_t i = 0; i < from.size(); ++i)
    std::copy_n(all.data() + from[i] * block, block, chosen.data() + static_cast<std::int64_t>(i) * block);
  return chosen;
}

// Returns elements from[i] of lengths (N), or nothing of empty ones.
inline std::vector<std::int32_t> gather_rows(const std::vector<std::int32_t>& lengths,
                                             std::span<const std::int32_t> from) {
  std::vector<std::int32_t> chosen;
  if (!lengths.empty())
    for (const std::int32_t i : from) chosen.push_back(lengths[static_cast<std::size_t>(i)]);
  return chosen;
}

// Throws ShapeError unless there is one token per hypothesis.
inline void require_tokens(std::span<const std::int32_t> tokens, std::int64_t hypotheses) {
  require<ShapeError>(std::ssize(tokens) == hypotheses, "decoding: {} tokens for {} hypotheses",
                      tokens.size(), hypotheses);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
