#include "thimble/ops/gradcheck_cases.h"

#include "ops/gradcheck_cases_shared.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

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
  // A kernel may treat rows in groups.
  static const std::vector<std::int32_t> many(37, 4);
  cases.push_back({"cross_entropy", "37 rows", {normal("logits", {37, 7})}, entropy(many, {})});
  cases.push_back(
      {"cross_entropy", "no label", {zero_gradient(normal("logits", {6, 7}))}, entropy(none, {})});
}

void add_recurrent(std::vector<GradcheckCase>& cases) {
  static const std::vector<std::int32_t> lengths{3, 1};
  cases.push_back({"step", "", {normal("x", {2, 3, 5})}, [](Tape&, Inputs in) { return step(in[0], 1); }});
  cases.push_back(
      {"step", "the only one", {normal("x", {1, 1, 20})}, [](Tape&, Inputs in) { return step(in[0], 0); }});
  const auto stacked = [](Tape&, Inputs in) { return stack(in); };
  cases.push_back(
      {"stack", "", {normal("first", {2, 5}), normal("second", {2, 5}), normal("third", {2, 5})}, stacked});
  cases.push_back({"stack", "one step", {normal("x", {1, 20})}, stacked});
  cases.push_back({"stack", "the same twice", {normal("x", {2, 3})}, [](Tape&, Inputs in) {
                     const Var steps[] = {in[0], in[0]};
                     return stack(steps);
                   }});
  const auto joined = [](Tape&, Inputs in) { return concat(in[0], in[1]); };
  cases.push_back({"concat", "", {normal("a", {2, 3, 5}), normal("b", {2, 3, 4})}, joined});
  cases.push_back({"concat", "17 columns and one", {normal("a", {1, 17}), normal("b", {1, 1})}, joined});
  const auto gates = [](std::int64_t batch, std::int64_t hidden) {
    return std::vector{normal("gates_x", {batch, 3 * hidden}), normal("gates_h", {batch, 3 * hidden}),
                       normal("h", {batch, hidden})};
  };
  const auto cell = [](std::span<const std::int32_t> ends, std::int64_t t) {
    return [=](Tape&, Inputs in) { return gru_cell(in[0], in[1], in[2], ends, t); };
  };
  cases.push_back({"gru_cell", "", gates(2, 5), cell({}, 0)});
  cases.push_back({"gru_cell", "one sequence, 37 channels", gates(1, 37), cell({}, 0)});
  cases.push_back({"gru_cell", "one channel", gates(3, 1), cell({}, 0)});
  cases.push_back({"gru_cell", "a sequence that has ended", gates(2, 5), cell(lengths, 1)});
}

}  // namespace

std::vector<GradcheckCase> gradcheck_cases() {
  std::vector<GradcheckCase> cases;
  add_arithmetic(cases);
  add_elementwise(cases);
  add_sequences(cases);
  add_recurrent(cases);
  add_attention_cases(cases);
  return cases;
}

}  // namespace thimble::inline THIMBLE_PRECISION
