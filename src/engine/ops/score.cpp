#include <cmath>

#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

std::optional<Shape> score_parameter(Score score, std::int64_t heads, std::int64_t d_key) {
  switch (kind_of(score).parameter) {
    case ScoreKind::Parameter::none:
      break;
    case ScoreKind::Parameter::vectors:
      return Shape{heads, d_key};
    case ScoreKind::Parameter::matrices:
      return Shape{heads, d_key, d_key};
  }
  return std::nullopt;
}

std::optional<double> score_factor(Score score, std::int64_t d_key) {
  if (!kind_of(score).product) return std::nullopt;
  return kind_of(score).scaled ? 1 / std::sqrt(static_cast<double>(d_key)) : 1;
}

// Maps every score to its op.
Var scored_attention(Score score, Columns q, Columns k, Columns v, std::optional<Var> parameter,
                     AttentionOptions options) {
  if (!kind_of(score).scaled) options.scale = Real(1);
  options.softmax = kind_of(score).softmax;
  switch (score) {
    case Score::scaled_dot:
    case Score::dot:
    case Score::linear:
      return attention(q, k, v, options);
    case Score::general:
      return attention(head_linear(q, *parameter, options.heads), k, v, options);
    case Score::additive:
      return attend(additive_score(q, k, *parameter, options.heads, options.kv_heads), v, options);
    case Score::cosine:
      return attention(head_norm(q, options.heads), head_norm(k, options.kv_heads), v, options);
    case Score::none:
      break;
  }
  throw Error("attention: the score must not be none");
}

std::vector<GradcheckCase> gradcheck_score() {
  static const AttentionOptions options{.heads = 4,
                                        .kv_heads = 2,
                                        .mask = {.causal = true, .lengths = {}},
                                        .scale = {},
                                        .key = {},
                                        .keep_weights = {}};
  const auto of = [](Score score) {
    const std::optional<Shape> shape = score_parameter(score, 4, 2);
    std::vector<GradcheckInput> inputs{normal("qkv", {2, 5, 8 + 4 + 6})};
    if (shape) inputs.push_back(normal("parameter", *shape));
    const auto f = [score](Tape&, Inputs in) {
      const std::optional<Var> parameter = in.size() > 1 ? std::optional(in[1]) : std::nullopt;
      return scored_attention(score, {in[0], 0, 8}, {in[0], 8, 4}, {in[0], 12, 6}, parameter, options);
    };
    return GradcheckCase{"scored_attention", std::string(kind_of(score).name), inputs, f};
  };
  return {of(Score::scaled_dot), of(Score::dot),    of(Score::general),
          of(Score::additive),   of(Score::cosine), of(Score::linear)};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
