// Additive scores against plain loops in long double.
#include "engine/kernels/attention/additive_score.h"

#include "catch.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/reference_attention.h"

using namespace thimble;

namespace {

constexpr std::int64_t kSequences = 2;

struct ScoreCase {
  std::int64_t queries, keys, d_key, heads, kv_heads, gap = 0;

  AttentionSizes sizes() const {
    return {.heads = heads, .kv_heads = kv_heads, .batch = kSequences, .queries = queries, .keys = keys};
  }
};

// The inputs and the results of the kernels.
struct ScoreRun {
  const ScoreCase c;
  Matrix q, k, weight, dscores, scores, dq, dk, dweight, scratch;
  const Matrix dq_before, dk_before, dweight_before;

  explicit ScoreRun(const ScoreCase& the_case)
      : c(the_case),
        q(kSequences * c.queries, c.heads * c.d_key, 1, c.gap),
        k(kSequences * c.keys, c.kv_heads * c.d_key, 2, c.gap),
        weight(c.heads, c.d_key, 3, c.gap),
        dscores(kSequences * c.heads * c.queries, c.keys, 4),
        scores(kSequences * c.heads * c.queries, c.keys, 5),
        dq(kSequences * c.queries, c.heads * c.d_key, 6, c.gap),
        dk(kSequences * c.keys, c.kv_heads * c.d_key, 7, c.gap),
        dweight(c.heads, c.d_key, 8, c.gap),
        scratch(c.queries + 2 * c.keys + 1, c.d_key),
        dq_before(dq),
        dk_before(dk),
        dweight_before(dweight) {}

  void forward() { kernels::additive_score_forward(scores, q, k, weight, scratch.view().data, c.sizes()); }
  void backward() {
    kernels::additive_score_backward(dq, dk, dweight, dscores, q, k, weight, scratch.view().data, c.sizes());
  }

  void check_forward(double bound) const {
    const WideMatrix wanted(scores);
    reference::additive_score_forward(wanted, WideMatrix(q), WideMatrix(k), WideMatrix(weight), wanted.data,
                                      c.sizes());
    CHECK(worst_error(scores, wanted) < bound);
    CHECK((scores.intact() && scratch.intact()));
  }
  void check_backward(double bound) const {
    const double pairs = static_cast<double>(kSequences * c.queries * c.keys);
    const WideMatrix wanted_dq(dq_before), wanted_dk(dk_before), wanted_dweight(dweight_before);
    reference::additive_score_backward(wanted_dq, wanted_dk, wanted_dweight, WideMatrix(dscores),
                                       WideMatrix(q), WideMatrix(k), WideMatrix(weight), wanted_dq.data,
                                       c.sizes());
    CHECK(worst_error(dq, wanted_dq) < bound);
    CHECK(worst_error(dk, wanted_dk) < bound);
    CHECK(worst_error(dweight, wanted_dweight) < bound * std::max(1.0, pairs / 500));
    CHECK((dq.intact() && dk.intact() && dweight.intact() && scratch.intact()));
  }
};

void check_scores(const ScoreCase& c) {
  CAPTURE(c.queries, c.keys, c.d_key, c.heads, c.kv_heads, c.gap);
  ScoreRun run(c);
  run.forward();
  run.check_forward(kRounding);
  run.backward();
  run.check_backward(kRounding);
}

// One head of one column and weight 1, so that scores are tanh(q + k), once for every pair of these.
ScoreRun tangents_of(const std::vector<double>& queries, const std::vector<double>& keys) {
  ScoreRun run({std::ssize(queries), std::ssize(keys), 1, 1, 1});
  for (std::int64_t b = 0; b < kSequences; ++b) {
    for (std::int64_t i = 0; i < run.c.queries; ++i)
      run.q(b * run.c.queries + i, 0) = static_cast<Real>(queries[static_cast<std::size_t>(i)]);
    for (std::int64_t j = 0; j < run.c.keys; ++j)
      run.k(b * run.c.keys + j, 0) = static_cast<Real>(keys[static_cast<std::size_t>(j)]);
  }
  run.weight(0, 0) = 1;
  return run;
}

constexpr double kExact = sizeof(Real) == sizeof(double) ? 1e-14 : 1e-6;

}  // namespace

TEST_CASE("additive scores, forward and backward, at every size", "[kernels][slow]") {
  for (const std::int64_t queries : {1, 3, 16, 37}) {
    for (const std::int64_t keys : {1, 4, 17, 37, 64}) {
      for (const std::int64_t d_key : {1, 3, 8, 16, 21}) {
        check_scores({queries, keys, d_key, 2, 2});
        check_scores({queries, keys, d_key, 2, 1});
      }
    }
  }
}

TEST_CASE("additive scores of heads that share keys, on blocks of wider matrices", "[kernels]") {
  for (const std::int64_t kv_heads : {1, 2, 3, 6}) {
    for (const std::int64_t gap : {1, 40}) check_scores({5, 7, 8, 6, kv_heads, gap});
  }
}

TEST_CASE("additive scores are exact for small and large numbers, and for large ones that cancel",
          "[kernels]") {
  // From +-1e-4 over +-100 to what is far beyond the exponents of Real.
  std::vector<double> numbers;
  for (const double largest :
       {1e-4, 0.1, 1.0, 10.0, 21.4, 21.6, 43.0, 80.0, 100.0, 174.0, 176.0, 400.0, 1e5}) {
    numbers.clear();
    for (int i = -25; i <= 25; ++i) numbers.push_back(largest * i / 25);
    CAPTURE(largest);
    ScoreRun run = tangents_of(numbers, numbers);
    run.forward();
    run.check_forward(kExact);
    run.backward();
    run.check_backward(20 * kExact);  // sums of 51 terms
  }
  ScoreRun run = tangents_of({80, -80}, {-80.5, 80.5, 0.25});
  run.forward();
  run.check_forward(kExact);
}

TEST_CASE("a number that is not finite shows in its own scores alone", "[kernels]") {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(),
                   kInf = std::numeric_limits<double>::infinity();
  for (const double other : {0.5, 200.0}) {
    ScoreRun run = tangents_of({kNaN, other, kInf}, {1, 2, 3, 4, 5});
    run.forward();
    for (std::int64_t j = 0; j < 5; ++j) {
      CHECK(std::isnan(run.scores(0, j)));
      CHECK_THAT(run.scores(1, j), WithinAbs(std::tanh(other + static_cast<double>(j) + 1), kExact));
      CHECK(run.scores(2, j) == 1);
    }
  }
}

TEST_CASE("the additive score's backward skips what is not wanted", "[kernels]") {
  const ScoreCase c{5, 7, 8, 4, 2};
  ScoreRun run(c);
  run.backward();
  ScoreRun again(c);
  const auto backward = [&](MatrixView dq, MatrixView dk, MatrixView dweight) {
    kernels::additive_score_backward(dq, dk, dweight, again.dscores, again.q, again.k, again.weight,
                                     again.scratch.view().data, c.sizes());
  };
  backward(again.dq, {}, {});
  backward({}, again.dk, {});
  backward({}, {}, again.dweight);
  CHECK(worst_error(again.dq, [&](auto r, auto x) { return run.dq(r, x); }) == 0);
  CHECK(worst_error(again.dk, [&](auto r, auto x) { return run.dk(r, x); }) == 0);
  CHECK(worst_error(again.dweight, [&](auto r, auto x) { return run.dweight(r, x); }) == 0);
}
