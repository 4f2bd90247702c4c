// The scores of attention: functions of a query and a key.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

namespace thimble {

enum class Score {
  scaled_dot,  // q^T k / sqrt(Dk), Vaswani et al. 2017
  dot,         // q^T k, Luong et al. 2015
  general,     // q^T W k, Luong et al. 2015
  additive,    // w^T tanh(q + k), Bahdanau et al. 2015
  cosine,      // sqrt(Dk) cos(q, k), Henry et al. 2020, "Query-Key Normalization for Transformers"
  linear,  // q^T k without a softmax: the weights are the scores, out = V K^T q, Katharopoulos et al. 2020
  none,    // no attention, in a recurrent model; must be the last
};

// The properties of a score.
struct ScoreKind {
  enum class Parameter { none, vectors, matrices };  // none; (H, Dk); (H, Dk, Dk)

  std::string_view name;                  // in a config
  Parameter parameter = Parameter::none;  // of the score
  bool product = true;  // q^T M k of q and k as they are; M is the parameter or the identity
  bool scaled = false;  // divided by sqrt(Dk)
  bool softmax = true;  // makes weights of the scores; false: scores are the weights

  bool matrices() const { return parameter == Parameter::matrices; }
};

// One row per Score, in its order.
inline constexpr ScoreKind kScoreKinds[] = {
    {.name = "scaled_dot", .scaled = true},
    {.name = "dot"},
    {.name = "general", .parameter = ScoreKind::Parameter::matrices},
    {.name = "additive", .parameter = ScoreKind::Parameter::vectors, .product = false},
    {.name = "cosine", .product = false, .scaled = true},  // Dk cos(q, k) / sqrt(Dk), of normalized q and k
    {.name = "linear", .softmax = false},
    {.name = "none", .product = false}};

static_assert(std::size(kScoreKinds) == static_cast<std::size_t>(Score::none) + 1);

constexpr const ScoreKind& kind_of(Score score) { return kScoreKinds[static_cast<std::size_t>(score)]; }

}  // namespace thimble
