// N-gram models against tests/fixtures/fixture_ngram.py, an independent program from the definitions.
#include "train/data/corpus/ngram.h"

#include <array>
#include <cstdint>
#include <vector>

#include "catch.h"
#include "thimble/train/task.h"

using namespace thimble;

namespace {

using Tokens = std::vector<std::int32_t>;

// Returns 62 documents of tokens 0 to 4, with kIgnore before each; two of them have one and two tokens.
Tokens documents() {
  Tokens out;
  std::uint32_t x = 1;
  for (int d = 0; d < 60; ++d) {
    out.insert(out.end(), {kIgnore, 0});
    for (std::int32_t last = 0, size = 1; size == 1 || (last != 0 && size < 12); ++size) {
      x = (x * 1103515245 + 12345) & 0x7FFFFFFF;
      auto token = static_cast<std::int32_t>((x >> 16) % 5);
      if (last != 0 && (x >> 20) % 3 != 0) token = last % 4 + 1;
      out.push_back(last = token);
    }
  }
  out.insert(out.end(), {kIgnore, 3, kIgnore, 0, 4});
  return out;
}

struct Query {
  Tokens context;
  std::int32_t token;
};
const std::vector<Query> kQueries{{{}, 2},           {{0}, 0},          {{0}, 3},
                                  {{4}, 1},          {{3}, 0},          {{0, 1}, 2},
                                  {{1, 2, 3}, 4},    {{0, 1, 2, 3}, 4}, {{0, 1, 2, 3, 4}, 1},
                                  {{2, 3, 4, 1}, 2}, {{2, 2, 2, 2}, 1}, {{1, 0}, 4},
                                  {{5}, 1}};

struct Expected {
  int order;
  std::array<double, 13> probabilities;
};
// What /usr/bin/python3 prints for kneser_ney(documents, order, 6) of the same queries.
const std::vector<Expected> kExpected{
    {1,
     {0.2235824742268041, 0.09213917525773196, 0.20554123711340205, 0.2467783505154639, 0.09213917525773196,
      0.2235824742268041, 0.22873711340206185, 0.22873711340206185, 0.2467783505154639, 0.2235824742268041,
      0.2467783505154639, 0.22873711340206185, 0.2467783505154639}},
    {2,
     {0.19, 0.244672131147541, 0.1790983606557377, 0.7944642857142857, 0.07694805194805195,
      0.7070224719101124, 0.7392857142857142, 0.7392857142857142, 0.7944642857142857, 0.7070224719101124,
      0.07694805194805195, 0.21188524590163932, 0.19}},
    {3,
     {0.19, 0.24344262295081967, 0.1778688524590164, 0.29658974358974355, 0.16797619047619047,
      0.516941724941725, 0.6759537337662338, 0.6759537337662338, 0.797970695970696, 0.712073717948718,
      0.20522222222222222, 0.21065573770491802, 0.19}},
    {5,
     {0.19, 0.24344262295081967, 0.1778688524590164, 0.29658974358974355, 0.16797619047619047,
      0.48801604028769796, 0.393268464072692, 0.24838008257222652, 0.8236248128827873, 0.6652735379902397,
      0.3046152505446623, 0.21065573770491802, 0.19}},
};

}  // namespace

TEST_CASE("n-gram models have the probabilities of an independent program", "[data][text]") {
  for (const auto& [order, probabilities] : kExpected) {
    const NgramModel model(documents(), 6, order);
    for (std::size_t i = 0; i < kQueries.size(); ++i) {
      CAPTURE(order, i);
      CHECK(model.probability(kQueries[i].context, kQueries[i].token) ==
            Catch::Approx(probabilities[i]).epsilon(1e-14));
    }
  }
}

TEST_CASE("the probabilities of all tokens sum to 1, whatever the context", "[data][text]") {
  const NgramModel model(documents(), 6, 5);
  const Tokens text = documents();
  for (std::size_t i = 0; i + 4 < text.size(); i += 7) {
    Tokens context(text.begin() + static_cast<std::ptrdiff_t>(i),
                   text.begin() + static_cast<std::ptrdiff_t>(i) + 4);
    for (std::int32_t& token : context) token = token < 0 ? 5 : token;
    double sum = 0;
    for (std::int32_t token = 0; token < 6; ++token) sum += model.probability(context, token);
    CHECK(sum == Catch::Approx(1).epsilon(1e-13));
  }
}

TEST_CASE("an n-gram model of nothing knows nothing", "[data][text]") {
  for (const Tokens& tokens : {Tokens{}, Tokens{kIgnore}, Tokens{kIgnore, 2}}) {
    const NgramModel model(tokens, 4, 5);
    CHECK(model.probability(Tokens{1, 2}, 3) == 0.25);
  }
}
