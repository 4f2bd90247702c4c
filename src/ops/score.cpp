#include <cmath>

#include "thimble/core/error.h"
#include "thimble/ops/ops.h"

namespace thimble::inline THIMBLE_PRECISION {

std::optional<Shape> score_parameter(Score score, std::int64_t heads, std::int64_t depth) {
  switch (kind_of(score).parameter) {
    case ScoreKind::Parameter::none:
      break;
    case ScoreKind::Parameter::vectors:
      return Shape{heads, depth};
    case ScoreKind::Parameter::matrices:
      return Shape{heads, depth, depth};
  }
  return std::nullopt;
}

std::optional<double> score_factor(Score score, std::int64_t depth) {
  if (!kind_of(score).product) return std::nullopt;
  return kind_of(score).scaled ? 1 / std::sqrt(static_cast<double>(depth)) : 1;
}

// The one place that knows which op makes a score.
Var scored_attention(Score score, Columns q, Columns k, Columns v, std::optional<Var> parameter,
                     AttentionOptions options) {
  if (!kind_of(score).scaled) options.scale = Real(1);
  switch (score) {
    case Score::scaled_dot:
    case Score::dot:
      return attention(q, k, v, options);
    case Score::general:
      return attention(head_linear(q, *parameter, options.heads), k, v, options);
    case Score::additive:
      return attend(additive_score(q, k, *parameter, options.heads, options.kv_heads), v, options);
    case Score::none:
      break;
  }
  throw Error("attention: needs a score");
}

}  // namespace thimble::inline THIMBLE_PRECISION
