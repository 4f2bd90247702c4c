#include <cmath>

#include "thimble/core/error.h"
#include "thimble/ops/ops.h"

// The one place that tells scores apart.
namespace thimble::inline THIMBLE_PRECISION {

std::optional<Shape> score_parameter(Score score, std::int64_t heads, std::int64_t depth) {
  switch (score) {
    case Score::scaled_dot:
    case Score::dot:
    case Score::none:
      break;
    case Score::general:
      return Shape{heads, depth, depth};
    case Score::additive:
      return Shape{heads, depth};
  }
  return std::nullopt;
}

std::optional<double> score_factor(Score score, std::int64_t depth) {
  switch (score) {
    case Score::scaled_dot:
      return 1 / std::sqrt(static_cast<double>(depth));
    case Score::dot:
    case Score::general:
      return 1;
    case Score::additive:
    case Score::none:
      break;
  }
  return std::nullopt;
}

Var scored_attention(Score score, Columns q, Columns k, Columns v, std::optional<Var> parameter,
                     AttentionOptions options) {
  switch (score) {
    case Score::scaled_dot:
      return attention(q, k, v, options);
    case Score::dot:
      options.scale = Real(1);
      return attention(q, k, v, options);
    case Score::general:
      options.scale = Real(1);
      return attention(head_linear(q, *parameter, options.heads), k, v, options);
    case Score::additive: {
      const std::int64_t kv_heads = options.kv_heads > 0 ? options.kv_heads : options.heads;
      return attend(additive_score(q, k, *parameter, options.heads, kv_heads), v, options);
    }
    case Score::none:
      break;
  }
  throw Error("attention: needs a score");
}

}  // namespace thimble::inline THIMBLE_PRECISION
