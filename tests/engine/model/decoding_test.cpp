// Greedy decoding and beam search against exhaustive search.
#include "thimble/engine/decoding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/engine/random.h"

using namespace thimble;

namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::int32_t kBegin = 3, kEnd = 4;
constexpr std::int64_t kTokenCount = 5;

// A decoder state whose logits depend on the tokens of a hypothesis alone.
std::vector<double> logits_after(const Tokens& read, std::uint64_t seed) {
  std::uint64_t key = 0;
  for (const std::int32_t token : read) key = key * 7 + static_cast<std::uint64_t>(token) + 1;
  std::vector<double> logits;
  for (std::uint32_t i = 0; i < kTokenCount; ++i)
    logits.push_back(2 * Random(seed, Stream::data).normal(key, i));
  return logits;
}

class Scripted : public DecoderState {
 public:
  explicit Scripted(std::uint64_t seed, std::size_t hypotheses = 1) : seed_(seed), read_(hypotheses) {}

  Tensor next(std::span<const std::int32_t> tokens) override {
    REQUIRE(tokens.size() == read_.size());
    Tensor logits({std::ssize(tokens), kTokenCount});
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      read_[i].push_back(tokens[i]);
      const std::vector<double> row = logits_after(read_[i], seed_);
      std::ranges::copy(row, logits.matrix().row(static_cast<std::int64_t>(i)));
    }
    return logits;
  }
  void reorder(std::span<const std::int32_t> from) override {
    std::vector<Tokens> reordered;
    for (const std::int32_t i : from) reordered.push_back(read_[static_cast<std::size_t>(i)]);
    read_ = std::move(reordered);
  }

 private:
  std::uint64_t seed_;
  std::vector<Tokens> read_;
};

// Returns all hypotheses, the most probable first.
std::vector<Hypothesis> all_answers(std::uint64_t seed, std::int64_t longest) {
  std::vector<Hypothesis> all;
  const std::function<void(Tokens, const Hypothesis&)> grow = [&](Tokens read, const Hypothesis& answer) {
    std::vector<double> logits = logits_after(read, seed);
    double sum = 0;
    for (const double x : logits) sum += std::exp(static_cast<double>(static_cast<Real>(x)));
    for (std::int32_t token = 0; token < kTokenCount; ++token) {
      Hypothesis longer = answer;
      const double x = static_cast<double>(static_cast<Real>(logits[static_cast<std::size_t>(token)]));
      longer.log_probability += x - std::log(sum);
      if (token != kEnd) longer.tokens.push_back(token);
      if (token == kEnd || std::ssize(read) == longest) {
        all.push_back(longer);
        continue;
      }
      Tokens more = read;
      more.push_back(token);
      grow(more, longer);
    }
  };
  grow({kBegin}, {});
  std::ranges::sort(all, std::ranges::greater(), &Hypothesis::log_probability);
  return all;
}

}  // namespace

TEST_CASE("a beam as wide as there are hypotheses finds the likeliest answers", "[model]") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    const std::vector<Hypothesis> all = all_answers(seed, 4);
    Scripted decoding(seed);
    const std::vector<Hypothesis> found = beam_search(decoding, 400, {kBegin, kEnd, 4});
    REQUIRE(found.size() == all.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK_THAT(found[i].log_probability, WithinAbs(all[i].log_probability, 1e-5));
    CHECK(found.front().tokens == all.front().tokens);
  }
}

TEST_CASE("one beam is the greedy answer, and wider ones are at least as likely on average", "[model]") {
  double greedy_sum = 0, beam_sum = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const DecodingOptions options{kBegin, kEnd, 5};
    Scripted one(seed), greedy(seed), wide(seed);
    const std::vector<Hypothesis> answers = greedy_decode(greedy, 1, options),
                                  beam = beam_search(one, 1, options);
    REQUIRE(answers.size() == 1);
    REQUIRE(beam.size() == 1);
    CHECK(answers[0].tokens == beam[0].tokens);
    CHECK_THAT(answers[0].log_probability, WithinAbs(beam[0].log_probability, 1e-9));
    greedy_sum += answers[0].log_probability;
    beam_sum += beam_search(wide, 8, options).front().log_probability;
  }
  CHECK(beam_sum > greedy_sum + 1);
}

TEST_CASE("greedy answers take the likeliest token, side by side as one by one", "[model]") {
  const DecodingOptions options{kBegin, kEnd, 6};
  Scripted several(7, 3), single(7);
  const std::vector<Hypothesis> three = greedy_decode(several, 3, options);
  const Hypothesis one = greedy_decode(single, 1, options)[0];
  REQUIRE(three.size() == 3);
  for (const Hypothesis& answer : three) CHECK(answer.tokens == one.tokens);
  Tokens read{kBegin};
  for (const std::int32_t token : one.tokens) {
    const std::vector<double> logits = logits_after(read, 7);
    CHECK(std::ranges::max_element(logits) - logits.begin() == token);
    read.push_back(token);
  }
}

namespace {

// A decoder state whose hypothesis i has i tokens and then the end, and tokens again after that.
class Staggered : public DecoderState {
 public:
  Tensor next(std::span<const std::int32_t> tokens) override {
    Tensor logits({std::ssize(tokens), kTokenCount});
    for (std::int64_t i = 0; i < std::ssize(tokens); ++i) logits.matrix().row(i)[i == steps ? kEnd : 1] = 5;
    ++steps;
    return logits;
  }
  void reorder(std::span<const std::int32_t>) override { FAIL("greedy answers stay in order"); }

  std::int64_t steps = 0;
};

}  // namespace

TEST_CASE("greedy answers end one by one, and the search with the last", "[model]") {
  Staggered decoding;
  const std::vector<Hypothesis> answers = greedy_decode(decoding, 4, {kBegin, kEnd, 9});
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(answers[i].tokens == Tokens(i, 1));
    const double each = 5 - std::log(std::exp(5) + kTokenCount - 1);
    CHECK_THAT(answers[i].log_probability, WithinAbs(static_cast<double>(i + 1) * each, 1e-6));
  }
  CHECK(decoding.steps == 4);
}

TEST_CASE("an answer that does not end is as long as it may be, and says so", "[model]") {
  std::array<int, 2> endings{};  // cut, finished
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Scripted greedy(seed), beam(seed);
    const Hypothesis answer = greedy_decode(greedy, 1, {kBegin, kEnd, 3})[0];
    CHECK(std::ssize(answer.tokens) <= 3);
    CHECK(answer.finished == (answer.tokens.size() < 3));
    for (const Hypothesis& found : beam_search(beam, 4, {kBegin, kEnd, 3})) {
      CHECK(std::ssize(found.tokens) <= 3);
      CHECK(found.finished == (found.tokens.size() < 3));
      ++endings[found.finished ? 1 : 0];
      CHECK(std::ranges::count(found.tokens, kEnd) == 0);
    }
  }
  CHECK((endings[0] > 0 && endings[1] > 0));
}

TEST_CASE("the log probabilities of an answer's tokens have its log probability as their sum", "[model]") {
  const auto holds = [](const std::vector<Hypothesis>& answers) {
    for (const Hypothesis& answer : answers) {
      double sum = 0;
      REQUIRE(answer.log_probabilities.size() == answer.tokens.size() + (answer.finished ? 1 : 0));
      for (const double log_p : answer.log_probabilities) sum += log_p;
      CHECK_THAT(answer.log_probability, WithinAbs(sum, 1e-12));
    }
  };
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Scripted greedy(seed), beam(seed), drawn(seed, 20);
    holds(greedy_decode(greedy, 1, {kBegin, kEnd, 4}));
    holds(beam_search(beam, 6, {kBegin, kEnd, 4}));
    holds(sample(drawn, 20, {kBegin, kEnd, 4}, {.temperature = 3}));
  }
}

namespace {

// Returns the probabilities with which sampling chooses a token, by its definition.
std::vector<double> chosen_with(const std::vector<double>& logits, const Sampling& how) {
  std::vector<std::pair<double, std::size_t>> tokens;
  for (std::size_t i = 0; i < logits.size(); ++i)
    tokens.emplace_back(-std::exp(logits[i] / how.temperature), i);
  std::ranges::sort(tokens);
  if (how.top_k > 0) tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(how.top_k)));
  double total = 0, kept = 0, before = 0;
  for (const auto& [negative, i] : tokens) total -= negative;
  std::vector<double> chosen(logits.size(), 0);
  for (const auto& [negative, i] : tokens) {
    if (before >= how.top_p * total) break;
    before -= negative;
    kept -= negative;
    chosen[i] = -negative;
  }
  for (double& p : chosen) p /= kept;
  return chosen;
}

}  // namespace

TEST_CASE("samples have the probabilities of their temperature, top-k and top-p", "[model][slow]") {
  constexpr std::int64_t kSamples = 20000;
  for (const Sampling& how :
       {Sampling{}, Sampling{.temperature = 0.5}, Sampling{.temperature = 3, .seed = 9}, Sampling{.top_k = 2},
        Sampling{.top_k = 100}, Sampling{.top_p = 0.7}, Sampling{.top_p = 1e-9},
        Sampling{.temperature = 2, .top_k = 4, .top_p = 0.8}}) {
    CAPTURE(how.temperature, how.top_k, how.top_p);
    Scripted decoding(3, kSamples);
    const std::vector<Hypothesis> answers = sample(decoding, kSamples, {kBegin, kNoEnd, 2}, how);
    std::array<std::array<double, kTokenCount>, kTokenCount> counts{};
    for (const Hypothesis& answer : answers) {
      REQUIRE(answer.tokens.size() == 2);
      ++counts[static_cast<std::size_t>(answer.tokens[0])][static_cast<std::size_t>(answer.tokens[1])];
    }
    const std::vector<double> first = chosen_with(logits_after({kBegin}, 3), how);
    for (std::int32_t a = 0; a < kTokenCount; ++a) {
      const std::vector<double> second = chosen_with(logits_after({kBegin, a}, 3), how);
      for (std::size_t b = 0; b < kTokenCount; ++b) {
        const double p = first[static_cast<std::size_t>(a)] * second[b];
        const double tolerance = 4.5 * std::sqrt(p * (1 - p) / kSamples);  // 7e-6 of correct draws exceed it
        CHECK_THAT(counts[static_cast<std::size_t>(a)][b] / kSamples, WithinAbs(p, tolerance));
      }
    }
  }
}

TEST_CASE("a sample depends on its seed and number, not on how many there are", "[model]") {
  const auto drawn = [](std::int64_t count, std::uint64_t seed) {
    Scripted decoding(5, static_cast<std::size_t>(count));
    std::vector<Tokens> tokens;
    for (const Hypothesis& answer : sample(decoding, count, {kBegin, kEnd, 8}, {.seed = seed}))
      tokens.push_back(answer.tokens);
    return tokens;
  };
  const std::vector<Tokens> few = drawn(3, 1), many = drawn(40, 1);
  CHECK(std::ranges::equal(few, std::span(many).first(3)));
  CHECK(std::ranges::count(many, many[0]) < 40);
  CHECK(drawn(40, 2) != many);
  CHECK(drawn(40, 1) == many);
}

TEST_CASE("the log probabilities of a sample are the model's", "[model]") {
  Scripted decoding(3, 5);
  for (const Hypothesis& answer : sample(decoding, 5, {kBegin, kNoEnd, 3}, {.temperature = 4, .top_k = 2})) {
    Tokens read{kBegin};
    for (std::size_t i = 0; i < answer.tokens.size(); ++i) {
      const std::vector<double> p = chosen_with(logits_after(read, 3), {});
      read.push_back(answer.tokens[i]);
      CHECK_THAT(answer.log_probabilities[i],
                 WithinAbs(std::log(p[static_cast<std::size_t>(read.back())]), 1e-5));
    }
  }
}

TEST_CASE("sampling out of range is refused", "[model]") {
  for (const Sampling& how : {Sampling{.temperature = 0}, Sampling{.temperature = -1}, Sampling{.top_k = -1},
                              Sampling{.top_p = 0}, Sampling{.top_p = 1.5}, Sampling{.temperature = NAN}}) {
    Scripted decoding(1);
    CHECK_THROWS_WITH(sample(decoding, 1, {kBegin, kEnd, 3}, how), StartsWith("sampling: temperature "));
  }
}

TEST_CASE("a beam search needs a beam", "[model]") {
  Scripted decoding(1);
  CHECK_THROWS_AS(beam_search(decoding, 0, {kBegin, kEnd, 3}), ShapeError);
  CHECK_THROWS_WITH(beam_search(decoding, 0, {kBegin, kEnd, 3}), "beam search: beams (0) must be at least 1");
}

namespace {

// Returns the result of beam search without early stopping.
std::vector<Hypothesis> plain_beams(std::uint64_t seed, std::size_t beams, std::int64_t longest) {
  const auto best = [beams](std::vector<Hypothesis>& answers) {
    std::ranges::stable_sort(answers, std::ranges::greater(), &Hypothesis::log_probability);
    answers.resize(std::min(answers.size(), beams));
  };
  std::vector<Hypothesis> open(1), ended;
  for (std::int64_t step = 1; step <= longest; ++step) {
    std::vector<Hypothesis> longer;
    for (const Hypothesis& answer : open) {
      Tokens read{kBegin};
      read.insert(read.end(), answer.tokens.begin(), answer.tokens.end());
      double sum = 0;
      const std::vector<double> logits = logits_after(read, seed);
      for (const double x : logits) sum += std::exp(static_cast<double>(static_cast<Real>(x)));
      for (std::int32_t token = 0; token < kTokenCount; ++token) {
        Hypothesis next = answer;
        next.tokens.push_back(token);
        next.log_probability +=
            static_cast<double>(static_cast<Real>(logits[static_cast<std::size_t>(token)])) - std::log(sum);
        longer.push_back(next);
      }
    }
    best(longer);
    open.clear();
    for (Hypothesis& answer : longer) {
      const bool end = answer.tokens.back() == kEnd;
      if (end) answer.tokens.pop_back();
      (end || step == longest ? ended : open).push_back(answer);
    }
  }
  best(ended);
  return ended;
}

}  // namespace

TEST_CASE("a beam search stops only where nothing likelier can follow", "[model]") {
  std::size_t long_ones = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    for (const std::int64_t beams : {2, 3, 4, 5, 6, 7, 8}) {
      CAPTURE(seed, beams);
      Scripted decoding(seed);
      const std::vector<Hypothesis> found = beam_search(decoding, beams, {kBegin, kEnd, 6});
      const std::vector<Hypothesis> expected = plain_beams(seed, static_cast<std::size_t>(beams), 6);
      REQUIRE(found.size() == expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(found[i].tokens == expected[i].tokens);
        CHECK_THAT(found[i].log_probability, WithinAbs(expected[i].log_probability, 1e-6));
        long_ones += found[i].tokens.size() > 4 ? 1 : 0;
      }
    }
  }
  CHECK(long_ones > 50);
}
