#include "thimble/ops/gradcheck_cases.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "thimble/ops/ops.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

using Inputs = std::span<const Var>;

// Normal values, different for every name.
GradcheckInput normal(const std::string& name, const Shape& shape) {
  const Random random(std::hash<std::string>{}(name), Stream::gradcheck);
  Tensor value(shape);
  std::uint64_t i = 0;
  for (Real& x : value.values()) x = static_cast<Real>(random.normal(i++));
  return {name, value};
}

// The same, at least 0.1 away from the kink at 0.
GradcheckInput away_from_zero(const std::string& name, const Shape& shape) {
  GradcheckInput input = normal(name, shape);
  for (Real& x : input.value.values()) x += std::copysign(Real(0.1), x);
  return input;
}

GradcheckInput zero_gradient(GradcheckInput input) {
  input.zero_gradient = true;
  return input;
}

// One input, one function of it, on a plain shape and on one with a size of 1.
void add_unary(std::vector<GradcheckCase>& cases, const std::string& op, const std::function<Var(Var)>& f) {
  const auto call = [f](Tape&, Inputs in) { return f(in[0]); };
  cases.push_back({op, "", {away_from_zero("x", {2, 3, 7})}, call});
  cases.push_back({op, "one row", {away_from_zero("x", {1, 5})}, call});
  cases.push_back({op, "40 columns", {away_from_zero("x", {2, 40})}, call});  // whole vectors and a rest
}

void add_arithmetic(std::vector<GradcheckCase>& cases) {
  cases.push_back({"add", "", {normal("a", {2, 3, 5}), normal("b", {2, 3, 5})}, [](Tape&, Inputs in) {
                     return add(in[0], in[1]);
                   }});
  cases.push_back(
      {"add", "the same twice", {normal("a", {2, 3})}, [](Tape&, Inputs in) { return add(in[0], in[0]); }});
  const auto product = [](Tape&, Inputs in) { return multiply(in[0], in[1]); };
  cases.push_back({"multiply", "", {normal("a", {2, 3, 5}), normal("b", {2, 3, 5})}, product});
  cases.push_back({"multiply", "40 columns", {normal("a", {1, 40}), normal("b", {1, 40})}, product});
  cases.push_back({"multiply", "the same twice", {normal("a", {2, 3})}, [](Tape&, Inputs in) {
                     return multiply(in[0], in[0]);
                   }});
  add_unary(cases, "scale", [](Var x) { return scale(x, Real(-1.7)); });
  cases.push_back({"matmul", "", {normal("a", {3, 5}), normal("b", {5, 7})}, [](Tape&, Inputs in) {
                     return matmul(in[0], in[1]);
                   }});
  cases.push_back(
      {"matmul", "inner size 1", {normal("a", {2, 1}), normal("b", {1, 3})}, [](Tape&, Inputs in) {
         return matmul(in[0], in[1]);
       }});
  const auto biased = [](Tape&, Inputs in) { return linear(in[0], in[1], in[2]); };
  cases.push_back(
      {"linear", "", {normal("x", {2, 3, 5}), normal("weight", {7, 5}), normal("bias", {7})}, biased});
  cases.push_back(
      {"linear", "19 rows", {normal("x", {19, 3}), normal("weight", {40, 3}), normal("bias", {40})}, biased});
  cases.push_back(
      {"linear", "one output", {normal("x", {3, 5}), normal("weight", {1, 5}), normal("bias", {1})}, biased});
  cases.push_back({"linear",
                   "inputs in two dimensions",
                   {normal("x", {2, 3, 10}), normal("weight", {7, 5, 2}), normal("bias", {7})},
                   biased});
  cases.push_back(
      {"linear", "no bias", {normal("x", {3, 5}), normal("weight", {7, 5})}, [](Tape&, Inputs in) {
         return linear(in[0], in[1]);
       }});
  cases.push_back(
      {"linear", "some columns", {normal("x", {3, 5}), normal("weight", {7, 2})}, [](Tape&, Inputs in) {
         return linear({in[0], 2, 2}, in[1]);
       }});
  const auto part = [](Tape&, Inputs in) { return linear_part(in[0], in[1], in[2], 2, 3); };
  cases.push_back(
      {"linear_part", "", {normal("x", {2, 3, 5}), normal("weight", {7, 5}), normal("bias", {7})}, part});
  cases.push_back({"linear_part",
                   "both halves",
                   {normal("x", {4, 5}), normal("weight", {6, 5}), normal("bias", {6})},
                   [](Tape&, Inputs in) {
                     return add(linear_part(in[0], in[1], in[2], 0, 3),
                                linear_part(in[0], in[1], in[2], 3, 3));
                   }});
}

void add_elementwise(std::vector<GradcheckCase>& cases) {
  add_unary(cases, "softmax", [](Var x) { return softmax(x); });
  cases.push_back({"softmax", "one column", {zero_gradient(normal("x", {3, 1}))}, [](Tape&, Inputs in) {
                     return softmax(in[0]);
                   }});
  const auto norm = [](Tape&, Inputs in) { return layer_norm(in[0], in[1], in[2]); };
  cases.push_back(
      {"layer_norm", "", {normal("x", {2, 3, 7}), normal("weight", {7}), normal("bias", {7})}, norm});
  cases.push_back({"layer_norm",
                   "40 columns",
                   {normal("x", {3, 40}), normal("weight", {40}), normal("bias", {40})},
                   norm});
  cases.push_back(
      {"layer_norm",
       "one column",
       {zero_gradient(normal("x", {3, 1})), zero_gradient(normal("weight", {1})), normal("bias", {1})},
       norm});
  const auto rms = [](Tape&, Inputs in) { return rms_norm(in[0], in[1]); };
  cases.push_back({"rms_norm", "", {normal("x", {2, 3, 7}), normal("weight", {7})}, rms});
  cases.push_back({"rms_norm", "40 columns", {normal("x", {3, 40}), normal("weight", {40})}, rms});
  cases.push_back({"rms_norm", "one row", {normal("x", {1, 5}), normal("weight", {5})}, rms});
  add_unary(cases, "relu", [](Var x) { return relu(x); });
  add_unary(cases, "gelu", [](Var x) { return gelu(x); });
  add_unary(cases, "gelu_tanh", [](Var x) { return gelu_tanh(x); });
  add_unary(cases, "silu", [](Var x) { return silu(x); });
  add_unary(cases, "tanh", [](Var x) { return tanh(x); });
  const kernels::DropoutKey key{Random(3, Stream::dropout), 1, 0, 2};
  add_unary(cases, "dropout", [key](Var x) { return dropout(x, Real(0.4), key); });
}

void add_sequences(std::vector<GradcheckCase>& cases) {
  static const std::vector<std::int32_t> tokens{1, 4, 4, 0, 1, 2}, lengths{3, 1};
  cases.push_back({"embedding", "", {normal("table", {5, 7})}, [](Tape&, Inputs in) {
                     return embedding(in[0], tokens, 3);
                   }});
  cases.push_back({"select_rows", "one twice", {normal("x", {2, 3, 7})}, [](Tape&, Inputs in) {
                     return select_rows(in[0], std::span(tokens).first(4));
                   }});
  const auto positions = [](Tape&, Inputs in) { return add_positions(in[0], in[1]); };
  cases.push_back({"add_positions", "", {normal("x", {2, 3, 5}), normal("positions", {3, 5})}, positions});
  cases.push_back(
      {"add_positions", "longer table", {normal("x", {2, 3, 5}), normal("positions", {4, 5})}, positions});
  const auto window = [](std::int64_t size, bool causal, std::span<const std::int32_t> counted) {
    return [=](Tape&, Inputs in) { return windows(in[0], size, causal, counted); };
  };
  cases.push_back({"windows", "", {normal("x", {2, 5, 3})}, window(3, false, {})});
  cases.push_back(
      {"windows", "causal, even, wider than the sequence", {normal("x", {2, 3, 5})}, window(4, true, {})});
  cases.push_back({"windows", "padding", {normal("x", {2, 3, 17})}, window(5, false, lengths)});
  cases.push_back({"windows", "one position", {normal("x", {1, 1, 5})}, window(1, false, {})});
  cases.push_back(
      {"mean_pool", "", {normal("x", {2, 3, 5})}, [](Tape&, Inputs in) { return mean_pool(in[0]); }});
  cases.push_back({"mean_pool", "padding", {normal("x", {2, 3, 5})}, [](Tape&, Inputs in) {
                     return mean_pool(in[0], lengths);
                   }});
  cases.push_back(
      {"first_pool", "", {normal("x", {2, 3, 5})}, [](Tape&, Inputs in) { return first_pool(in[0]); }});
  cases.push_back(
      {"last_pool", "", {normal("x", {2, 3, 5})}, [](Tape&, Inputs in) { return last_pool(in[0]); }});
  cases.push_back({"last_pool", "padding", {normal("x", {2, 3, 5})}, [](Tape&, Inputs in) {
                     return last_pool(in[0], lengths);
                   }});

  static const std::vector<std::int32_t> labels{2, -1, 0, 6, 3, -1}, none(6, -1);
  const auto entropy = [](const std::vector<std::int32_t>& targets, CrossEntropyOptions options) {
    return [&targets, options](Tape&, Inputs in) { return cross_entropy(in[0], targets, options); };
  };
  cases.push_back({"cross_entropy", "ignored labels", {normal("logits", {2, 3, 7})}, entropy(labels, {})});
  cases.push_back(
      {"cross_entropy", "smoothing", {normal("logits", {2, 3, 7})}, entropy(labels, {Real(0.2), 0})});
  cases.push_back(
      {"cross_entropy", "sum, 40 classes", {normal("logits", {2, 3, 40})}, entropy(labels, {Real(0.1), 1})});
  cases.push_back(
      {"cross_entropy", "no label", {zero_gradient(normal("logits", {6, 7}))}, entropy(none, {})});
}

// Queries, keys and values side by side, of `heads` and `kv_heads` heads, 2 columns each of queries and keys
// and 3 of values. With `tied`, keys are the queries.
GradcheckCase packed_attention(const std::string& variant, std::int64_t time, AttentionOptions options,
                               bool tied = false) {
  const std::int64_t kv = options.kv_heads > 0 ? options.kv_heads : options.heads;
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
  AttentionOptions later = grouped;
  later.mask = {.causal = true, .lengths = {}, .first_query = 3};
  cases.push_back({"attention",
                   "causal, queries from position 3",
                   {normal("q", {2, 2, 8}), normal("k", {2, 5, 4}), normal("v", {2, 5, 6})},
                   [later](Tape&, Inputs in) { return attention(in[0], in[1], in[2], later); }});
}

void add_attention_cases(std::vector<GradcheckCase>& cases) {
  static const std::vector<std::int32_t> lengths{5, 3}, with_empty{0, 4};
  const auto attend = [](AttentionOptions options) {
    return [options](Tape&, Inputs in) { return attention(in[0], in[1], in[2], options); };
  };
  const auto inputs = [](std::int64_t queries, std::int64_t keys, std::int64_t heads) {
    return std::vector{normal("q", {2, queries, heads * 3}), normal("k", {2, keys, heads * 3}),
                       normal("v", {2, keys, heads * 4})};
  };
  AttentionOptions two{.heads = 2, .mask = {}, .scale = {}, .key = {}};
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

}  // namespace

std::vector<GradcheckCase> gradcheck_cases() {
  std::vector<GradcheckCase> cases;
  add_arithmetic(cases);
  add_elementwise(cases);
  add_sequences(cases);
  add_attention_cases(cases);
  add_head_parts(cases);
  add_additive_scores(cases);
  return cases;
}

}  // namespace thimble::inline THIMBLE_PRECISION
