// Kernels give the same bits for every instruction set that rounds alike, whatever the width of its vectors.
#include <hwy/targets.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.h"
#include "engine/kernels/arithmetic.h"
#include "engine/kernels/attention/additive_score.h"
#include "engine/kernels/attention/attention_steps.h"
#include "engine/kernels/attention/head_linear.h"
#include "engine/kernels/attention/head_norm.h"
#include "engine/kernels/attention/rotary.h"
#include "engine/kernels/cpu_targets.h"
#include "engine/kernels/cross_entropy.h"
#include "engine/kernels/dropout.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/embedding.h"
#include "engine/kernels/gelu.h"
#include "engine/kernels/gru.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/optimizer.h"
#include "engine/kernels/pool.h"
#include "engine/kernels/products/linear.h"
#include "engine/kernels/softmax.h"
#include "engine/kernels/unfold.h"
#include "thimble/engine/gemm.h"
#include "train/files/hash.h"

using namespace thimble;

namespace {

using Bits = std::vector<std::conditional_t<sizeof(Real) == 8, std::uint64_t, std::uint32_t>>;
constexpr std::int64_t kRows = 6, kHeadCount = 2;

// The bits of what each kernel wrote.
class Outputs {
 public:
  // Calls kernel(outputs...) with matrices of ones of these shapes, to which a kernel may add, and keeps them.
  template <std::size_t kCount, class Kernel>
  void add(const std::string& name, const std::pair<std::int64_t, std::int64_t> (&shapes)[kCount],
           const Kernel& kernel) {
    std::vector<Matrix> outputs;
    for (const auto& [rows, columns] : shapes) outputs.emplace_back(rows, columns).fill(1);
    call(kernel, outputs, std::make_index_sequence<kCount>());
    for (const Matrix& m : outputs) {
      for (std::int64_t r = 0; r < m.rows(); ++r) {
        for (std::int64_t c = 0; c < m.cols(); ++c)
          bits[name].push_back(std::bit_cast<Bits::value_type>(m(r, c)));
      }
    }
  }

  std::map<std::string, Bits> bits;

 private:
  template <class Kernel, std::size_t... kIndex>
  static void call(const Kernel& kernel, std::vector<Matrix>& outputs, std::index_sequence<kIndex...>) {
    kernel(outputs[kIndex].view()...);
  }
};

std::span<Real> span_of(MatrixView m) { return {m.data, static_cast<std::size_t>(m.cols)}; }

// Rows of n elements: activations, norms, losses, optimizers.
void add_rows(Outputs& out, std::int64_t n) {
  const std::pair shape(kRows, n), row(std::int64_t{1}, n), one(std::int64_t{1}, std::int64_t{1}),
      pair(kRows, kHeadCount);
  const Matrix x(kRows, n, 1), dy(kRows, n, 2), w(1, n, 3), b(1, n, 4), saved(kRows, 2, 5),
      gates(kRows, 3 * n, 6), more_gates(kRows, 3 * n, 7);
  const std::vector<std::int32_t> labels{0, static_cast<std::int32_t>(n - 1), -1,
                                         0, static_cast<std::int32_t>(n / 2), 0};
  using M = MatrixView;
  out.add("softmax_forward", {shape}, [&](M y) { kernels::softmax_forward(y, x); });
  out.add("softmax_backward", {shape}, [&](M dx) { kernels::softmax_backward(dx, dy, x); });
  out.add("layer_norm_forward", {shape, pair},
          [&](M y, M s) { kernels::layer_norm_forward(y, s, x, w, b, kEpsilon); });
  out.add("layer_norm_backward", {shape, row, row},
          [&](M dx, M dw, M db) { kernels::layer_norm_backward(dx, dw, db, dy, x, w, saved); });
  out.add("rms_norm_forward", {shape, pair},
          [&](M y, M s) { kernels::rms_norm_forward(y, s, x, w, kEpsilon); });
  out.add("rms_norm_backward", {shape, row},
          [&](M dx, M dw) { kernels::rms_norm_backward(dx, dw, dy, x, w, saved); });
  out.add("gelu_erf_forward", {shape, shape}, [&](M y, M d) { kernels::gelu_erf_forward(y, d, x); });
  out.add("gelu_tanh_forward", {shape, shape}, [&](M y, M d) { kernels::gelu_tanh_forward(y, d, x); });
  out.add("silu_forward", {shape, shape}, [&](M y, M d) { kernels::silu_forward(y, d, x); });
  out.add("tanh_forward", {shape}, [&](M y) { kernels::tanh_forward(y, x); });
  out.add("tanh_backward", {shape}, [&](M dx) { kernels::tanh_backward(dx, dy, x); });
  out.add("relu_forward", {shape}, [&](M y) { kernels::relu_forward(y, x); });
  out.add("relu_backward", {shape}, [&](M dx) { kernels::relu_backward(dx, dy, x); });
  out.add("add_forward", {shape}, [&](M y) { kernels::add_forward(y, x, dy); });
  out.add("mul_forward", {shape}, [&](M y) { kernels::mul_forward(y, x, dy); });
  out.add("mul_backward", {shape}, [&](M dx) { kernels::mul_backward(dx, dy, x); });
  out.add("scale_forward", {shape}, [&](M y) { kernels::scale_forward(y, x, Real(0.3)); });
  out.add("scale_backward", {shape}, [&](M dx) { kernels::scale_backward(dx, dy, Real(0.3)); });
  out.add("accumulate", {shape}, [&](M dx) { kernels::accumulate(dx, dy); });
  out.add("dropout_factors", {shape}, [&](M f) {
    kernels::dropout_factors(f, Real(0.3), {{1, Stream::dropout}}, 3);
  });
  for (const Real smoothing : {Real(0), Real(0.1)}) {
    out.add("cross_entropy_forward", {shape, one}, [&](M dlogits, M loss) {
      loss.data[0] =
          static_cast<Real>(kernels::cross_entropy_forward(dlogits, x, labels, smoothing, Real(0.2)));
    });
  }
  const std::vector<std::int32_t> tokens{0, 1, 1, 4, 0, 0};
  out.add("embedding_forward", {shape}, [&](M y) { kernels::embedding_forward(y, x, tokens); });
  out.add("embedding_backward", {shape}, [&](M d) { kernels::embedding_backward(d, dy, tokens); });
  out.add("add_positions_forward", {shape}, [&](M y) { kernels::add_positions_forward(y, x, dy, 3); });
  out.add("add_positions_backward", {shape}, [&](M d) { kernels::add_positions_backward(d, dy, 3); });
  out.add("sinusoidal_positions", {shape}, [&](M y) { kernels::sinusoidal_positions(y); });
  out.add("gru_cell_forward", {shape, std::pair(kRows, 3 * n)},
          [&](M y, M g) { kernels::gru_cell_forward(y, g, gates, more_gates, x, {}); });
  out.add("gru_cell_backward", {std::pair(kRows, 3 * n), std::pair(kRows, 3 * n), shape},
          [&](M da, M db, M dh) { kernels::gru_cell_backward(da, db, dh, dy, gates, x, more_gates, {}); });
  const kernels::UnfoldSizes unfolded{.time = 3, .window = 3, .before = 1};
  out.add("unfold_forward", {std::pair(kRows, 3 * n)}, [&](M y) { kernels::unfold_forward(y, x, unfolded); });
  out.add("unfold_backward", {shape}, [&](M dx) { kernels::unfold_backward(dx, gates, unfolded); });
  const kernels::AdamFactors adam{.lr = Real(0.1),
                                  .beta1 = Real(0.9),
                                  .beta2 = Real(0.99),
                                  .root_correction = Real(3),
                                  .epsilon = Real(1e-8),
                                  .shrink = Real(0.95),
                                  .l2 = Real(0.3),
                                  .gradient_scale = Real(0.7)};
  out.add("adam_step", {row, row, row}, [&](M p, M m, M v) {
    kernels::adam_step(span_of(p), span_of(m), span_of(v), span_of(Matrix(w)), adam);
  });
  out.add("sgd_step", {row, row}, [&](M p, M v) {
    kernels::sgd_step(span_of(p), span_of(v), span_of(Matrix(w)),
                      {Real(0.1), Real(0.9), Real(0.01), Real(0.7)});
  });
  out.add("sum_of_squares", {one},
          [&](M sum) { sum.data[0] = static_cast<Real>(kernels::sum_of_squares(span_of(Matrix(w)))); });
}

// Products with an inner size of n, whose operands are packed or not.
void add_products(Outputs& out, std::int64_t n) {
  using kernels::Op;
  const std::int64_t outputs = n + 3;
  const Matrix x(kRows, n, 1), weight(outputs, n, 2), bias(1, outputs, 3), dy(kRows, outputs, 4);
  const Matrix across(n, kRows, 5), heads(kRows, kHeadCount * n, 6), matrices(kHeadCount * n, 3, 7);
  const Matrix dheads(kRows, kHeadCount * 3, 8), pooled(2, n, 9), weights(2, kRows / 2, 10);
  std::vector<Real> panels(static_cast<std::size_t>(kernels::packed_size(n, outputs)));
  const std::pair shape(kRows, n), y(kRows, outputs), dweight(outputs, n), dbias(std::int64_t{1}, outputs);
  using M = MatrixView;
  for (const bool packed : {false, true}) {
    const kernels::PackedView view =
        packed ? kernels::pack(panels.data(), weight, Op::transpose) : kernels::PackedView{};
    out.add("linear_forward", {y}, [&](M to) { kernels::linear_forward(to, x, weight, view, bias); });
  }
  out.add("linear_backward", {shape, dweight, dbias},
          [&](M dx, M dw, M db) { kernels::linear_backward(dx, dw, db, dy, x, weight, {}); });
  const std::pair square(kRows, kRows);
  out.add("gemm", {square}, [&](M c) { kernels::gemm(c, x, Op::none, across, Op::none); });
  out.add("gemm", {square}, [&](M c) { kernels::gemm(c, across, Op::transpose, across, Op::none); });
  out.add("gemm", {square}, [&](M c) { kernels::gemm(c, across, Op::transpose, x, Op::transpose); });
  out.add("gemm_add", {square}, [&](M c) { kernels::gemm_add(c, x, Op::none, x, Op::transpose); });
  out.add("pool_forward", {std::pair(std::int64_t{2}, n)},
          [&](M to) { kernels::pool_forward(to, x, weights); });
  out.add("pool_backward", {shape}, [&](M dx) { kernels::pool_backward(dx, pooled, weights); });
  out.add("head_linear_forward", {std::pair(kRows, kHeadCount * 3)},
          [&](M to) { kernels::head_linear_forward(to, heads, matrices, kHeadCount); });
  out.add("head_linear_backward",
          {std::pair(kRows, kHeadCount * n), std::pair(kHeadCount * n, std::int64_t{3})},
          [&](M dx, M dw) { kernels::head_linear_backward(dx, dw, dheads, heads, matrices, kHeadCount); });
}

// Heads of n columns, sequences of n keys.
void add_attention(Outputs& out, std::int64_t n) {
  constexpr std::int64_t kBatch = 2, kQueries = 3;
  const std::int64_t keys = n, d_key = 2 * ((n + 1) / 2), width = kHeadCount * d_key;
  const AttentionSizes sizes{.heads = kHeadCount,
                             .kv_heads = 1,
                             .d_key = d_key,
                             .d_value = d_key,
                             .batch = kBatch,
                             .queries = kQueries,
                             .keys = keys};
  const Matrix q(kBatch * kQueries, width, 1), k(kBatch * keys, d_key, 2), v(kBatch * keys, d_key, 3);
  const Matrix dout(kBatch * kQueries, width, 4), weight(kHeadCount, d_key, 6);
  Matrix saved(kBatch * kHeadCount * kQueries, keys, 5);
  const Matrix rrms(kBatch * kQueries, kHeadCount, 7);
  const std::pair query(kBatch * kQueries, width), key(kBatch * keys, d_key),
      weights(kBatch * kHeadCount * kQueries, keys);
  std::vector<Real> scratch(static_cast<std::size_t>(d_key * (kQueries + 2 * keys + 1) + kQueries * keys));
  const std::vector<std::int32_t> lengths{static_cast<std::int32_t>(n),
                                          static_cast<std::int32_t>((n + 1) / 2)};
  const std::vector<Real> slopes{Real(0.5), Real(0.3)};
  using M = MatrixView;
  out.add("attention_weights_forward", {weights}, [&](M p) {
    kernels::attention_weights_forward(p, q, k, scratch.data(), sizes, {.lengths = lengths, .slopes = slopes},
                                       Real(0.3));
  });
  out.add("attention_softmax_forward", {weights},
          [&](M p) { kernels::attention_softmax_forward(p, saved, sizes, {.causal = true, .lengths = {}}); });
  out.add("attention_apply_forward", {query},
          [&](M y) { kernels::attention_apply_forward(y, saved, v, sizes); });
  out.add("attention_backward", {query, key, key}, [&](M dq, M dk, M dv) {
    kernels::attention_backward(
        {dv, dq, dk}, dout, {q, k, v}, scratch.data(),
        {.sizes = sizes, .scale = Real(0.3), .kept = {saved, saved, saved}, .block = 0});
  });
  out.add("attention_softmax_backward", {weights, key}, [&](M ds, M dv) {
    kernels::attention_backward({dv, {}, {}, ds}, dout, {{}, {}, v}, scratch.data(),
                                {.sizes = sizes, .kept = {saved}, .block = 0});
  });
  for (const Real scale : {Real(1), Real(50)}) {  // 50: exponents too large for the product of two powers
    Matrix large = q;
    kernels::scale_forward(large, q, scale);
    out.add("additive_score_forward", {weights},
            [&](M s) { kernels::additive_score_forward(s, large, k, weight, scratch.data(), sizes); });
    out.add("additive_score_backward", {query, key, std::pair(kHeadCount, d_key)}, [&](M dq, M dk, M dw) {
      kernels::additive_score_backward(dq, dk, dw, saved, large, k, weight, scratch.data(), sizes);
    });
  }
  out.add("head_norm_forward", {query, std::pair(kBatch * kQueries, kHeadCount)},
          [&](M y, M r) { kernels::head_norm_forward(y, r, q, kHeadCount, kEpsilon); });
  out.add("head_norm_backward", {query},
          [&](M dx) { kernels::head_norm_backward(dx, dout, q, rrms, kHeadCount); });
  Matrix table(kQueries, 2 * d_key);
  out.add("rotary_table", {std::pair(kQueries, 2 * d_key)}, [&](M t) {
    kernels::rotary_table(t, 5);
    kernels::rotary_table(table, 5);
  });
  const kernels::RotaryColumns columns{0, width, d_key};
  out.add("rotary_forward", {query}, [&](M y) { kernels::rotary_forward(y, q, table, columns); });
  out.add("rotary_backward", {query}, [&](M dx) { kernels::rotary_backward(dx, dout, table, columns); });
}

Outputs outputs_of(std::int64_t target) {
  hwy::GetChosenTarget().Update(target);
  Outputs out;
  for (std::int64_t n = 1; n <= 40; ++n) {
    add_rows(out, n);
    add_products(out, n);
    add_attention(out, n);
  }
  return out;
}

std::string digits_of(const Outputs& out) {
  std::string bytes;
  for (const auto& [name, bits] : out.bits)
    bytes.append(reinterpret_cast<const char*>(bits.data()), bits.size() * sizeof bits[0]);
  return hash_digits(bytes);
}

}  // namespace

TEST_CASE("a static program chooses among the targets that Highway's library does", "[kernels]") {
  const std::int64_t ours = kernels::cpu_targets() & HWY_TARGETS,
                     theirs = hwy::SupportedTargets() & HWY_TARGETS;
  CHECK((theirs & ~ours) == 0);
  if (std::getenv("THIMBLE_TARGET") == nullptr) CHECK(ours == theirs);
}

TEST_CASE("targets that round alike give the same bits, which every compiler and CPU gives", "[kernels]") {
  constexpr bool kDouble = sizeof(Real) == 8;
  const std::map<std::string_view, std::string> hashes{
      {"fused", kDouble ? "097a62985dc174a8" : "776b4ea8a7c4d461"},
      {"separate", kDouble ? "70cbbf87dc139238" : "fa02eee2fc231745"}};
  std::map<std::string_view, Outputs> first;  // by arithmetic
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const Outputs out = outputs_of(target);
    const Outputs& expected = first.emplace(kernels::arithmetic(), out).first->second;
    CAPTURE(hwy::TargetName(target), kernels::arithmetic());
    for (const auto& [name, bits] : out.bits) {
      CAPTURE(name);
      CHECK((bits == expected.bits.at(name)));
    }
    CHECK(digits_of(out) == hashes.at(kernels::arithmetic()));
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}
