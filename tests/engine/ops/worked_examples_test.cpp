// Attention in numbers small enough to follow by hand: softmax(q k^T / sqrt(d_k)) v (Vaswani et al. 2017,
// section 3.2). Each stage is computed by an op of its own and compared; then the fused op must show the same
// weights and output. A whole sentence is in docs/concepts.md and concepts_page_test.cpp.
#include <algorithm>
#include <limits>

#include "catch.h"
#include "fixtures_compare.h"
#include "thimble/engine/ops.h"

using namespace thimble;
using tests::compare_gradient;
using tests::compare_tensor;
using tests::compare_value;

namespace {

AttentionOptions observed_by(tests::Capture& capture, std::int64_t heads) {
  AttentionOptions options;
  options.heads = options.kv_heads = heads;
  options.hooks = &capture;
  return options;
}

bool all_zero(MatrixView x) {
  return std::ranges::all_of(tests::elements(x), [](Real value) { return value == 0; });
}

}  // namespace

TEST_CASE("worked example: one query over three keys, d_k = 4 and d_v = 2", "[ops][attention]") {
  const Tensor query({1, 1, 4}, {2, 0, 1, 1});
  const Tensor keys({1, 3, 4}, {1, 0, 0, 0,  //
                                1, 1, 1, 1,  //
                                0, 2, 1, -1});
  const Tensor values({1, 3, 2}, {1, 0,  //
                                  0, 1,  //
                                  2, -1});
  // q . k = 2*1 = 2,  2*1 + 1*1 + 1*1 = 4,  1*1 - 1*1 = 0; then divided by sqrt(4).
  const std::initializer_list<double> scores{2, 4, 0}, scaled{1, 2, 0};
  // e^1, e^2, e^0, divided by their sum 11.107337927389695.
  const std::initializer_list<double> weights{0.24472847105479772, 0.6652409557748219, 0.09003057317038045};
  // w1 (1, 0) + w2 (0, 1) + w3 (2, -1)
  const std::initializer_list<double> output{0.42478961739555865, 0.5752103826044415};

  Tape stages;
  const Var dots = matmul(stages.constant(Tensor({1, 4}, query.values())),
                          stages.constant(Tensor({4, 3}, {1, 1, 0,  // keys as columns
                                                          0, 1, 2,  //
                                                          0, 1, 1,  //
                                                          0, 1, -1})));
  compare_value("scores", dots, scores);
  compare_value("scaled scores", scale(dots, Real(0.5)), scaled);
  const Var soft = softmax(scale(dots, Real(0.5)));
  compare_value("weights", soft, weights);
  compare_value("output", matmul(soft, stages.constant(Tensor({3, 2}, values.values()))), output);

  tests::Capture capture;
  Tape tape;
  const Var q = tape.variable(query), k = tape.variable(keys), v = tape.variable(values);
  const Var out = attention(q, k, v, observed_by(capture, 1));
  compare_tensor("captured weights", capture.value(), weights);
  compare_value("fused output", out, output);

  // Backwards from the cotangent (1, 2). Each value gets its weight times that. Each weight gets its value
  // times that, 1, 2, 0, whose mean under the weights is 1.5752103826044415; so a scaled score gets its
  // weight times (1, 2, 0 less the mean) = -0.14077035746963018, 0.2825874510794423, -0.14181709360981215.
  // The query gets half of each times the key, and each key half of its own times the query.
  tape.backward(out, Tensor({1, 2}, {1, 2}).matrix());
  compare_gradient("values", v,
                   {0.24472847105479772, 0.48945694210959545,  //
                    0.6652409557748219, 1.3304819115496438,    //
                    0.09003057317038045, 0.1800611463407609});
  compare_gradient("query", q,
                   {0.07090854680490605, -0.0005233680700910126, 0.07038517873481506, 0.2122022723446272});
  compare_gradient("keys", k,
                   {-0.14077035746963018, 0, -0.07038517873481509, -0.07038517873481509,  //
                    0.2825874510794423, 0, 0.14129372553972114, 0.14129372553972114,      //
                    -0.14181709360981215, 0, -0.07090854680490608, -0.07090854680490608});
}

TEST_CASE("worked example: two heads are two separate attentions, side by side", "[ops][attention]") {
  // Three tokens; the first two columns belong to head 0, the last two to head 1.
  const Tensor q({1, 3, 4}, {1, 0, 0, 2,  //
                             0, 1, 1, 1,  //
                             1, 1, -1, 0});
  const Tensor k({1, 3, 4}, {1, 1, 1, 0,   //
                             0, 2, -1, 1,  //
                             -1, 0, 0, 1});
  const Tensor v({1, 3, 4}, {1, 2, 3, 4,  //
                             5, 6, 7, 8,  //
                             9, 0, 1, -2});
  const Tensor cotangent({1, 3, 4}, {1, -1, 2, 0,  //
                                     0, 3, 1, 1,   //
                                     -2, 1, 0, 5});
  // q k^T is 1 0 -1, 1 2 0, 2 2 -1 in head 0 and 0 2 2, 1 0 1, -1 1 0 in head 1.
  // Divided by sqrt(2), then the softmax of each row:
  const std::initializer_list<double> weights{
      0.575975345215362,   0.28399540974126003, 0.14002924504337802,   // head 0
      0.28399540974126003, 0.575975345215362,   0.14002924504337802,   //
      0.4717263166328707,  0.4717263166328707,  0.056547366734258565,  //
      0.10838345178479356, 0.44580827410760315, 0.44580827410760315,   // head 1
      0.4011120926797859,  0.1977758146404282,  0.4011120926797859,    //
      0.14002924504337802, 0.575975345215362,   0.28399540974126003};
  const std::initializer_list<double> output{
      3.2562155993120645, 2.855923148878284,  3.891616548215206, 3.1083834517847935,  //
      4.424135341208473,  4.0238428907746915, 2.988879073202141, 2.384430702482997,   //
      3.339284200405551,  3.7738105330629654, 4.735910561378928, 4.599928922413888};

  tests::Capture capture;
  Tape tape;
  const Var both_q = tape.variable(q), both_k = tape.variable(k), both_v = tape.variable(v);
  const Var both = attention(both_q, both_k, both_v, observed_by(capture, 2));
  tape.backward(both, cotangent.matrix());
  compare_tensor("weights", capture.value(), weights);
  compare_value("output", both, output);

  for (std::int64_t h = 0; h < 2; ++h) {
    const auto columns = [h](ConstMatrixView x) {
      std::vector<Real> part;
      for (std::int64_t r = 0; r < x.rows; ++r) {
        part.insert(part.end(), x.row(r) + 2 * h, x.row(r) + 2 * h + 2);
      }
      return Tensor({1, 3, 2}, part);
    };
    const auto compare = [&](const std::string& name, MatrixView one, MatrixView two) {
      tests::compare(fmt::format("{}, head {}", name, h), {1, 3, 2}, tests::elements(one),
                     columns(two).values());
    };
    Tape alone;
    const Var q1 = alone.variable(columns(q.matrix())), k1 = alone.variable(columns(k.matrix())),
              v1 = alone.variable(columns(v.matrix()));
    const Var one = attention(q1, k1, v1, {});
    alone.backward(one, columns(cotangent.matrix()).matrix());
    compare("output", one.value(), both.value());
    compare("gradient of q", q1.grad(), both_q.grad());
    compare("gradient of k", k1.grad(), both_k.grad());
    compare("gradient of v", v1.grad(), both_v.grad());
  }
}

TEST_CASE("a query that sees no key gets output 0 and gradient 0", "[ops][attention]") {
  const bool causal = GENERATE(false, true);
  // Of two sequences the first has no key; the second is there for gradients that are not 0.
  const std::vector<std::int32_t> lengths{0, 2};
  tests::Capture capture;
  AttentionOptions options = observed_by(capture, 1);
  options.mask = {causal, lengths};
  Tape tape;
  tape.constant(Tensor({1000}, std::vector<Real>(1000, std::numeric_limits<Real>::quiet_NaN())));
  tape.rewind();  // what is not written from here on is NaN
  const Var q = tape.variable(Tensor({2, 2, 2}, {3, -4, 5, 6, 1, 2, 3, 4}));
  const Var k = tape.variable(Tensor({2, 2, 2}, {7, 8, -9, 1, 4, 3, 2, 2}));
  const Var v = tape.variable(Tensor({2, 2, 2}, {2, 3, 4, 5, 6, 7, 8, 1}));
  const Var out = attention(q, k, v, options);
  tape.backward(out, Tensor({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}).matrix());
  CHECK_FALSE(tape.first_non_finite_value());
  CHECK_FALSE(tape.first_non_finite_gradient());

  Tensor weights = capture.value();
  CHECK(all_zero(weights.matrix().row_block(0, 2)));
  CHECK_FALSE(all_zero(weights.matrix().row_block(2, 2)));
  CHECK(all_zero(out.value().row_block(0, 2)));
  CHECK_FALSE(all_zero(out.value().row_block(2, 2)));
  for (const Var input : {q, k, v}) {
    CHECK(all_zero(input.grad().row_block(0, 2)));
    CHECK_FALSE(all_zero(input.grad().row_block(2, 2)));
  }
}
