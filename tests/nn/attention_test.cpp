// What a MultiHeadAttention says of itself, and what it refuses.
#include "thimble/nn/attention.h"

#include "catch.h"
#include "thimble/core/error.h"

using namespace thimble;

namespace {

void expect_refused(const AttentionSettings& settings, const std::string& rule) {
  ParameterStore store;
  CHECK_THROWS_AS(MultiHeadAttention(store, "module", settings), ShapeError);
  try {
    MultiHeadAttention(store, "other", settings);
  } catch (const ShapeError& e) {
    CHECK_THAT(e.what(), ContainsSubstring(rule));
  }
}

std::int64_t offset(const ParameterStore& store, ConstMatrixView view, Parameter p) {
  return view.data - store.values(p).data();
}

}  // namespace

TEST_CASE("heads that do not fit together are refused", "[nn]") {
  expect_refused({.channels = 8, .heads = 3}, "3 heads do not divide 8 channels");
  expect_refused({.channels = 8, .heads = 3, .depth = 2}, "3 heads do not divide 8 channels");
  expect_refused({.channels = 8, .heads = 0}, "0 heads");
  expect_refused({.channels = 8, .heads = 4, .kv_heads = 3}, "3 heads of keys and values do not divide 4");
  expect_refused({.channels = 8, .heads = 4, .kv_heads = 2, .tied = true},
                 "as many heads of keys as of queries");
}

TEST_CASE("where a head's weights lie", "[nn]") {
  ParameterStore store;
  const MultiHeadAttention grouped(store, "grouped",
                                   {.channels = 10, .heads = 4, .kv_heads = 2, .depth = 3, .width = 5});
  CHECK(store.entry(grouped.in_proj_weight).shape == Shape{4 * 3 + 2 * 3 + 2 * 5, 10});
  CHECK(store.entry(grouped.out_proj_weights.at(0)).shape == Shape{10, 4 * 5});
  const auto head = grouped.head(store, 3);
  CHECK((head.query.rows == 3 && head.key.rows == 3 && head.value.rows == 5 && head.output.cols == 5));
  CHECK(offset(store, head.query, grouped.in_proj_weight) == 10 * 9);
  CHECK(offset(store, head.key, grouped.in_proj_weight) == 10 * 15);
  CHECK(offset(store, head.value, grouped.in_proj_weight) == 10 * (18 + 5));
  CHECK(offset(store, head.output, grouped.out_proj_weights[0]) == 15);
  CHECK(head.output.stride == 20);

  const MultiHeadAttention tied(store, "tied", {.channels = 6, .heads = 2, .tied = true, .summed = true});
  CHECK(store.entry(tied.in_proj_weight).shape == Shape{6 + 6, 6});
  REQUIRE(tied.out_proj_weights.size() == 2);
  CHECK(store.entry(tied.out_proj_weights[1]).name == "tied.out_proj.1.weight");
  CHECK(store.entry(tied.out_proj_weights[1]).shape == Shape{6, 3});
  CHECK(tied.head(store, 1).key.data == tied.head(store, 1).query.data);
  CHECK(offset(store, tied.head(store, 1).value, tied.in_proj_weight) == 6 * 9);
  CHECK(offset(store, tied.head(store, 1).output, tied.out_proj_weights[1]) == 0);
}
