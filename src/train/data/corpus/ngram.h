// N-gram models, with which the loss of a language model is compared.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace thimble {

// Interpolated Kneser-Ney smoothing with three discounts per order (Chen and Goodman 1999, section 3):
//
//   p_n(w|h) = max(c(hw) - D(c(hw)), 0) / C(h)  +  (D1 N1(h) + D2 N2(h) + D3 N3(h)) / C(h) * p_n-1(w|h'),
//   C(h)     = sum over w of c(hw),    p_0 = 1 / V,
//
// where h' is h without its first token, N1, N2 and N3 are the numbers of w with c(hw) = 1, 2 and more, and
// p_n = p_n-1 where C(h) = 0. In the highest order c(g) is how often g occurs; in lower orders how many tokens
// occur before it, and how often it begins a document. Of Y = n1 / (n1 + 2 n2), with nk the number of n-grams of
// count k: D1 = 1 - 2 Y n2/n1, D2 = 2 - 3 Y n3/n2, D3 = 3 - 4 Y n4/n3; 0.5, 1 and 1.5 where these are none.
class NgramModel {
 public:
  // Counts tokens of 0 .. vocabulary - 1; a negative one comes before each document, whose first token is context
  // only. At most 2^31 tokens.
  NgramModel(std::span<const std::int32_t> tokens, std::int64_t vocabulary, int order);

  // Returns the probability of a token after a context, of which it reads the last order - 1 tokens.
  double probability(std::span<const std::int32_t> context, std::int32_t token) const;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  // The n-grams of an order. Each has a number, by which the level above refers to it.
  struct Level {
    std::vector<std::uint64_t> keys;    // number of the first n - 1 tokens << 32 | last token, ascending
    std::vector<std::uint32_t> counts;  // c
    std::array<double, 4> discounts{};  // by min(c, 3)

    std::uint32_t find(std::uint32_t prefix, std::int32_t token) const;  // kNone: it does not occur
    void set_discounts();
  };

  // C(h) and the numerator of the second term.
  struct Context {
    double total = 0, discounted = 0;
  };

  static Context context_of(const Level&, std::uint32_t prefix);

  std::int64_t vocabulary_;
  std::vector<Level> levels_;                     // of n-grams of 1, 2, ... tokens
  std::array<std::vector<Context>, 2> contexts_;  // of no token and of one, whose continuations are many
};

}  // namespace thimble
