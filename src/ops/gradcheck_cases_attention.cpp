#include <fmt/format.h>

#include <optional>
#include <utility>

#include "ops/gradcheck_cases_shared.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

// Queries, keys and values side by side, of `heads` and `kv_heads` heads, 2 columns each of queries and keys
// and 3 of values. With `tied`, keys are the queries.
GradcheckCase packed_attention(const std::string& variant, std::int64_t time, AttentionOptions options,
                               bool tied = false) {
  const std::int64_t kv = options.kv_heads;
  const std::int64_t key = tied ? 0 : 2 * options.heads, value = key + 2 * kv;
  return {"attention", variant, {normal("qkv", {2, time, value + 3 * kv})}, [=](Tape&, Inputs in) {
            return attention({in[0], 0, 2 * options.heads}, {in[0], key, 2 * kv}, {in[0], value, 3 * kv},
                             options);
          }};
}

void add_packed_attention_cases(std::vector<GradcheckCase>& cases, const AttentionOptions& two,
                                const AttentionOptions& dropped) {
  cases.push_back(packed_attention("packed", 5, two));
  cases.push_back(packed_attention("packed, dropout, causal, padding", 5, dropped));
  cases.push_back(packed_attention("packed, one token", 1, two));
  cases.push_back(packed_attention("tied", 5, dropped, true));
  AttentionOptions grouped = two;
  grouped.heads = 4;
  for (const std::int64_t kv_heads : {1, 2}) {
    grouped.kv_heads = kv_heads;
    cases.push_back(packed_attention(fmt::format("4 heads on {}", kv_heads), 5, grouped));
  }
  // One tensor for all three, so one gradient for all three; and columns that nothing reads.
  cases.push_back({"attention", "of itself", {normal("x", {2, 5, 6})}, [two](Tape&, Inputs in) {
                     return attention(in[0], in[0], in[0], two);
                   }});
  cases.push_back({"attention", "some columns", {normal("x", {2, 5, 9})}, [two](Tape&, Inputs in) {
                     return attention({in[0], 1, 4}, {in[0], 3, 4}, {in[0], 7, 2}, two);
                   }});
  static const std::vector<Real> slopes{Real(0.5), Real(0.1), Real(1), Real(0.3)};
  AttentionOptions near = grouped;
  near.mask.slopes = slopes;
  cases.push_back(packed_attention("ALiBi", 5, near));
  AttentionOptions later = grouped;
  later.mask = {.causal = true, .lengths = {}, .first_query = 3};
  cases.push_back({"attention",
                   "causal, queries from position 3",
                   {normal("q", {2, 2, 8}), normal("k", {2, 5, 4}), normal("v", {2, 5, 6})},
                   [later](Tape&, Inputs in) { return attention(in[0], in[1], in[2], later); }});
}

void add_attend_cases(std::vector<GradcheckCase>& cases, const AttentionOptions& two,
                      const AttentionOptions& dropped) {
  const auto with = [](AttentionOptions options) {
    return [options](Tape&, Inputs in) { return attend(in[0], in[1], options); };
  };
  const auto inputs = [](std::int64_t queries, std::int64_t keys, std::int64_t heads, std::int64_t kv_heads) {
    return std::vector{normal("scores", {2, heads, queries, keys}), normal("v", {2, keys, kv_heads * 3})};
  };
  cases.push_back({"attend", "", inputs(3, 7, 2, 2), with(two)});
  cases.push_back({"attend", "20 keys", inputs(2, 20, 2, 2), with(two)});
  cases.push_back({"attend", "dropout, causal, padding", inputs(5, 5, 2, 2), with(dropped)});
  AttentionOptions grouped = two;
  grouped.heads = 4;
  grouped.kv_heads = 2;
  cases.push_back({"attend", "4 heads on 2", inputs(3, 5, 4, 2), with(grouped)});
  cases.push_back({"attend",
                   "one key",
                   {zero_gradient(normal("scores", {2, 2, 3, 1})), normal("v", {2, 1, 6})},
                   with(two)});
  cases.push_back({"attend",
                   "scores that are used twice, values in a projection",
                   {normal("scores", {2, 2, 3, 5}), normal("kv", {2, 5, 9})},
                   [two](Tape&, Inputs in) {
                     return add(attend(in[0], {in[1], 3, 6}, two), attend(in[0], {in[1], 0, 6}, two));
                   }});
}

void add_dot_cases(std::vector<GradcheckCase>& cases) {
  static const std::vector<std::int32_t> lengths{5, 3}, with_empty{0, 4};
  const auto attend = [](AttentionOptions options) {
    return [options](Tape&, Inputs in) { return attention(in[0], in[1], in[2], options); };
  };
  const auto inputs = [](std::int64_t queries, std::int64_t keys, std::int64_t heads) {
    return std::vector{normal("q", {2, queries, heads * 3}), normal("k", {2, keys, heads * 3}),
                       normal("v", {2, keys, heads * 4})};
  };
  AttentionOptions two{.heads = 2, .kv_heads = 2, .mask = {}, .scale = {}, .key = {}};
  cases.push_back({"attention", "", inputs(5, 5, 2), attend(two)});
  cases.push_back({"attention", "3 queries, 7 keys", inputs(3, 7, 2), attend(two)});
  cases.push_back(
      {"attention", "20 keys", inputs(9, 20, 1), attend({.heads = 1, .mask = {}, .scale = {}, .key = {}})});
  const auto with = [&](bool causal, std::span<const std::int32_t> keys) {
    AttentionOptions options = two;
    options.mask = {causal, keys};
    return attend(options);
  };
  cases.push_back({"attention", "causal", inputs(5, 5, 2), with(true, {})});
  cases.push_back({"attention", "padding", inputs(5, 5, 2), with(false, lengths)});
  cases.push_back({"attention", "causal, padding", inputs(5, 5, 2), with(true, lengths)});
  cases.push_back({"attention", "a sequence without keys", inputs(5, 5, 2), with(true, with_empty)});
  AttentionOptions dropped = two;
  dropped.mask = {true, lengths};
  dropped.dropout = Real(0.3);
  dropped.key = kernels::DropoutKey{Random(5, Stream::dropout), 1, 0, 1};
  cases.push_back({"attention", "dropout", inputs(5, 5, 2), attend(dropped)});
  AttentionOptions scaled = two;
  scaled.scale = Real(0.3);
  cases.push_back({"attention", "scale 0.3", inputs(5, 5, 2), attend(scaled)});
  cases.push_back(
      {"attention",
       "one key",
       {zero_gradient(normal("q", {2, 3, 4})), zero_gradient(normal("k", {2, 1, 4})), normal("v", {2, 1, 6})},
       attend(two)});
  add_packed_attention_cases(cases, two, dropped);
  add_attend_cases(cases, two, dropped);
}

void add_head_parts(std::vector<GradcheckCase>& cases) {
  const auto heads = [](std::int64_t count) {
    return [count](Tape&, Inputs in) { return head_linear(in[0], in[1], count); };
  };
  cases.push_back({"head_linear", "", {normal("x", {2, 3, 10}), normal("weight", {2, 5, 7})}, heads(2)});
  cases.push_back(
      {"head_linear", "one of all", {normal("x", {1, 1}), normal("weight", {1, 1, 1})}, heads(1)});
  cases.push_back(
      {"head_linear", "40 columns", {normal("x", {19, 40}), normal("weight", {1, 40, 37})}, heads(1)});
  cases.push_back({"head_linear",
                   "a block of columns, and the whole",
                   {normal("x", {2, 3, 10}), normal("weight", {2, 2, 5})},
                   [](Tape&, Inputs in) {
                     return add(head_linear({in[0], 3, 4}, in[1], 2), in[0]);
                   }});

  const auto rotate = [](std::int64_t first, std::int64_t count, std::int64_t depth, std::int64_t position) {
    return [=](Tape&, Inputs in) { return rotary(in[0], first, count, depth, position); };
  };
  cases.push_back({"rotary", "", {normal("x", {2, 3, 12})}, rotate(0, 12, 6, 0)});
  cases.push_back({"rotary", "a block of columns", {normal("x", {2, 3, 11})}, rotate(5, 4, 2, 7)});
  cases.push_back({"rotary", "one token, 40 columns", {normal("x", {1, 1, 40})}, rotate(0, 40, 40, 3)});
  cases.push_back({"rotary", "no column", {normal("x", {1, 2, 3})}, rotate(1, 0, 2, 0)});
}

void add_additive_scores(std::vector<GradcheckCase>& cases) {
  const auto inputs = [](std::int64_t queries, std::int64_t keys, std::int64_t heads, std::int64_t kv_heads,
                         std::int64_t depth) {
    return std::vector{normal("q", {2, queries, heads * depth}), normal("k", {2, keys, kv_heads * depth}),
                       normal("weight", {heads, depth})};
  };
  const auto score = [](std::int64_t heads, std::int64_t kv_heads) {
    return [=](Tape&, Inputs in) { return additive_score(in[0], in[1], in[2], heads, kv_heads); };
  };
  cases.push_back({"additive_score", "", inputs(5, 5, 2, 2, 3), score(2, 2)});
  cases.push_back({"additive_score", "3 queries, 7 keys", inputs(3, 7, 2, 2, 3), score(2, 2)});
  cases.push_back({"additive_score", "9 queries, 20 keys, 21 columns", inputs(9, 20, 1, 1, 21), score(1, 1)});
  cases.push_back({"additive_score", "4 heads share 2 of keys", inputs(5, 4, 4, 2, 3), score(4, 2)});
  cases.push_back({"additive_score", "one of all", inputs(1, 1, 1, 1, 1), score(1, 1)});
  cases.push_back({"additive_score",
                   "columns of one projection",
                   {normal("x", {2, 4, 10}), normal("weight", {2, 3})},
                   [](Tape&, Inputs in) {
                     return additive_score({in[0], 1, 6}, {in[0], 7, 3}, in[1], 2, 1);
                   }});
  GradcheckInput q = normal("q", {1, 3, 4}), k = normal("k", {1, 3, 4});
  for (Real& x : q.value.values()) x += 500;
  for (Real& x : k.value.values()) x -= 500;
  cases.push_back({"additive_score", "large, and cancelling", {q, k, normal("weight", {1, 4})}, score(1, 1)});
}

void add_scored_cases(std::vector<GradcheckCase>& cases) {
  AttentionOptions options{.heads = 4, .kv_heads = 2, .mask = {}, .scale = {}, .key = {}};
  options.mask.causal = true;
  for (int kind = 0; kind < static_cast<int>(Score::none); ++kind) {
    const auto score = static_cast<Score>(kind);
    const std::optional<Shape> shape = score_parameter(score, 4, 2);
    std::vector<GradcheckInput> inputs{normal("qkv", {2, 5, 8 + 4 + 6})};
    if (shape) inputs.push_back(normal("parameter", *shape));
    cases.push_back(
        {"scored_attention", std::string(kind_of(score).name), inputs, [options, score](Tape&, Inputs in) {
           const std::optional<Var> parameter = in.size() > 1 ? std::optional(in[1]) : std::nullopt;
           return scored_attention(score, {in[0], 0, 8}, {in[0], 8, 4}, {in[0], 12, 6}, parameter, options);
         }});
  }
}

}  // namespace

void add_attention_cases(std::vector<GradcheckCase>& cases) {
  add_dot_cases(cases);
  add_head_parts(cases);
  add_additive_scores(cases);
  add_scored_cases(cases);
}

}  // namespace thimble::inline THIMBLE_PRECISION
