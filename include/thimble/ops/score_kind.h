// How a query scores a key.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

namespace thimble {

enum class Score {
  scaled_dot,  // q^T k / sqrt(Dk), Vaswani et al. 2017
  dot,         // q^T k, Luong et al. 2015
  general,     // q^T W k, the same
  additive,    // w^T tanh(q + k), Bahdanau et al. 2015
  cosine,      // sqrt(Dk) cos(q, k), Henry et al. 2020, "Query-Key Normalization for Transformers"
  none,        // nothing: no attention at all; the last
};

// What those need to know of a score who name it, size it and look into it; of H heads of depth Dk.
struct ScoreKind {
  enum class Parameter { none, vectors, matrices };  // (H, Dk); (H, Dk, Dk)

  std::string_view name;                  // in a config
  Parameter parameter = Parameter::none;  // of its own
  bool product = true;                    // q^T M k with some matrix M, which a `matrices` is
  bool scaled = false;                    // divided by sqrt(Dk)

  bool matrices() const { return parameter == Parameter::matrices; }
};

// In the order above.
inline constexpr ScoreKind kScoreKinds[] = {
    {.name = "scaled_dot", .scaled = true},
    {.name = "dot"},
    {.name = "general", .parameter = ScoreKind::Parameter::matrices},
    {.name = "additive", .parameter = ScoreKind::Parameter::vectors, .product = false},
    {.name = "cosine", .product = false, .scaled = true},
    {.name = "none", .product = false}};

static_assert(std::size(kScoreKinds) == static_cast<std::size_t>(Score::none) + 1);

constexpr const ScoreKind& kind_of(Score score) { return kScoreKinds[static_cast<std::size_t>(score)]; }

}  // namespace thimble
