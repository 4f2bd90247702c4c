// The sizes and views of MultiHeadAttention, and configs that it rejects.
#include "thimble/engine/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "catch.h"
#include "fixtures_compare.h"
#include "thimble/engine/error.h"

using namespace thimble;

namespace {

void expect_refused(std::int64_t d_model, std::int64_t heads, const AttentionConfig& config,
                    Positions positions, const std::string& rule) {
  ParameterStore store;
  try {
    const MultiHeadAttention module(store, "module", d_model, heads, config, positions);
    FAIL("accepted");
  } catch (const ShapeError& e) {
    CHECK_THAT(e.what(), ContainsSubstring(rule));
  }
}

std::vector<Real> rows_of(ConstMatrixView x) {
  std::vector<Real> out;
  for (std::int64_t r = 0; r < x.rows; ++r) out.insert(out.end(), x.row(r), x.row(r) + x.cols);
  return out;
}

std::int64_t offset(const ParameterStore& store, ConstMatrixView view, Parameter p) {
  return view.data - store.values(p).data();
}

}  // namespace

TEST_CASE("heads that do not fit together are refused", "[nn]") {
  const std::string uneven = "heads (3) must divide d_model (8)";
  expect_refused(8, 3, {}, Positions::none, uneven);
  expect_refused(8, 3, {.d_key = 2}, Positions::none, uneven);
  expect_refused(8, 0, {}, Positions::none, "heads (0)");
  expect_refused(8, 4, {.kv_heads = 3}, Positions::none, "kv_heads (3) must divide heads (4)");
  expect_refused(8, 4, {.tie_query_key = true, .kv_heads = 2}, Positions::none,
                 "kv_heads (2) must equal heads (4)");
  expect_refused(9, 3, {}, Positions::rotary, "an even d_key, not 3");
}

TEST_CASE("positions of two sequences are not related", "[nn]") {
  const std::pair<Mask, Positions> cases[] = {
      {Mask::causal, Positions::none}, {Mask::none, Positions::rotary}, {Mask::none, Positions::alibi}};
  for (const auto& [mask, positions] : cases) {
    ParameterStore store;
    const MultiHeadAttention module(store, "module", 4, 1, {.mask = mask}, positions);
    Tape tape;
    tape.bind(store, {});
    const Var x = tape.constant(Tensor({1, 3, 4}));
    CHECK_THROWS_AS(module(x, x, {}, {}), ShapeError);
    CHECK_NOTHROW(module(x, {}, {}));
  }
}

TEST_CASE("where a head's weights lie", "[nn]") {
  ParameterStore store;
  const MultiHeadAttention grouped(store, "grouped", 10, 4, {.kv_heads = 2, .d_key = 3, .d_value = 5});
  CHECK(store.entry(grouped.in_proj_weight).shape == Shape{4 * 3 + 2 * 3 + 2 * 5, 10});
  CHECK(store.entry(grouped.out_proj_weights.at(0)).shape == Shape{10, 4 * 5});
  const auto head = grouped.head(store, 3);
  CHECK((head.query.rows == 3 && head.key.rows == 3 && head.value.rows == 5 && head.output.cols == 5));
  CHECK(offset(store, head.query, grouped.in_proj_weight) == 10 * 9);
  CHECK(offset(store, head.key, grouped.in_proj_weight) == 10 * 15);
  CHECK(offset(store, head.value, grouped.in_proj_weight) == 10 * (18 + 5));
  CHECK(offset(store, head.output, grouped.out_proj_weights[0]) == 15);
  CHECK(head.output.stride == 20);

  const MultiHeadAttention tied(store, "tied", 6, 2, {.combine = Combine::sum, .tie_query_key = true});
  CHECK(store.entry(tied.in_proj_weight).shape == Shape{6 + 6, 6});
  REQUIRE(tied.out_proj_weights.size() == 2);
  CHECK(store.entry(tied.out_proj_weights[1]).name == "tied.out_proj.1.weight");
  CHECK(store.entry(tied.out_proj_weights[1]).shape == Shape{6, 3});
  CHECK(tied.head(store, 1).key.data == tied.head(store, 1).query.data);
  CHECK(offset(store, tied.head(store, 1).value, tied.in_proj_weight) == 6 * 9);
  CHECK(offset(store, tied.head(store, 1).output, tied.out_proj_weights[1]) == 0);
  CHECK(tied.head(store, 1).score.data == nullptr);

  const MultiHeadAttention general(store, "general", 6, 2, {.score = Score::general});
  CHECK(store.entry(*general.score_weight).shape == Shape{2, 3, 3});
  CHECK(offset(store, general.head(store, 1).score, *general.score_weight) == 9);
}

TEST_CASE("without in_proj, queries, keys and values are the input", "[nn]") {
  ParameterStore store;
  const MultiHeadAttention module(store, "module", 6, 2, {.score = Score::linear, .in_proj = false});
  module.init(store, 3);
  REQUIRE(store.entries().size() == 2);
  std::ranges::fill(store.values(module.out_proj_weights[0]), Real(0));
  for (std::size_t i = 0; i < 6; ++i) store.values(module.out_proj_weights[0])[7 * i] = 1;
  Tape tape(Tape::Mode::inference);
  tape.bind(store, {});
  const Tensor numbers({1, 2, 6}, {1, 2, 3, 4, 5, 6, 0, 1, 0, -1, 2, 1}),
      other({1, 1, 6}, {1, 0, 2, 0, 1, 0});
  const Var x = tape.constant(numbers), memory = tape.constant(other);
  // Products of the two rows within a head: 14, 2, 1 and 77, 12, 6.
  const std::vector<Real> itself = {14, 30, 42, 308 - 12, 385 + 24, 462 + 12,
                                    2,  5,  6,  48 - 6,   60 + 12,  72 + 6};
  CHECK(rows_of(module(x, {}, {}).value()) == itself);
  CHECK(rows_of(module(x, memory, {}, {}).value()) == std::vector<Real>{7, 0, 14, 0, 5, 0, 0, 0, 0, 0, 2, 0});
  const auto second = module.head(store, 1);
  for (const ConstMatrixView view : {second.query, second.key, second.value})
    CHECK(rows_of(view) == std::vector<Real>{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1});
  expect_refused(6, 2, {.in_proj = false, .tie_query_key = true}, Positions::none, "require in_proj");
  expect_refused(6, 2, {.in_proj = false, .d_value = 2}, Positions::none, "require in_proj");
  expect_refused(8, 2, {.in_proj = false}, Positions::rotary, "require in_proj");
}

TEST_CASE("token by token, with the keys and values kept, comes out what comes out at once", "[nn]") {
  for (const Score score : {Score::scaled_dot, Score::general, Score::additive}) {
    for (const bool rotary : {false, true}) {
      CAPTURE(score, rotary);
      ParameterStore store;
      const MultiHeadAttention module(store, "module", 8, 4,
                                      {.mask = Mask::causal, .score = score, .kv_heads = 2},
                                      rotary ? Positions::rotary : Positions::alibi);
      module.init(store, 3);
      constexpr std::int64_t kTime = 5;
      Tensor all({1, kTime, 8}), keys({1, kTime, 4}), values({1, kTime, 4});
      const Random random(4, Stream::gradcheck);
      for (std::size_t i = 0; i < all.values().size(); ++i)
        all.values()[i] = static_cast<Real>(random.normal(i));
      Tape tape(Tape::Mode::inference);
      tape.bind(store, {});
      const Var expected = module(tape.constant(all), {}, {});
      for (std::int64_t t = 0; t < kTime; ++t) {
        const Tensor token({1, 1, 8}, std::span(std::as_const(all).matrix().row(t), 8));
        auto now = module.project(tape.constant(token), t);
        std::copy_n(now.k.value().row(0), 4, keys.matrix().row(t));
        std::copy_n(now.v.value().row(0), 4, values.matrix().row(t));
        const auto so_far = [&](const Tensor& x) {
          return tape.constant(
              Tensor({1, t + 1, 4}, x.values().first(static_cast<std::size_t>(4 * (t + 1)))));
        };
        const MatrixView out = module.attend({now.q, so_far(keys), so_far(values)}, {}, t, {}).value();
        for (std::int64_t c = 0; c < 8; ++c)
          CHECK_THAT(out.row(0)[c], WithinAbs(static_cast<double>(expected.value().row(t)[c]), 1e-6));
      }
    }
  }
}

TEST_CASE("the slopes of ALiBi are those of the paper", "[nn]") {
  // Equal keys: the logarithm of a weight differs by the slope from one position to the next.
  ParameterStore store;
  const MultiHeadAttention module(store, "module", 8, 8, {}, Positions::alibi);
  tests::Capture capture;
  Tape tape;
  tape.bind(store, {});
  module(tape.constant(Tensor({1, 3, 8})), {}, {.hooks = &capture});
  const Tensor weights = capture.value();
  for (std::int64_t h = 0; h < 8; ++h) {
    const Real* row = weights.matrix().row(3 * h);
    CHECK_THAT(std::log(static_cast<double>(row[0] / row[1])), WithinAbs(std::exp2(-(h + 1.0)), 1e-5));
    CHECK_THAT(std::log(static_cast<double>(row[1] / row[2])), WithinAbs(std::exp2(-(h + 1.0)), 1e-5));
  }
}
