// How fast the kernels are, at the shapes of configs/bench and with the tokens of one micro-batch: products
// in FLOP/s, the others in bytes/s, with each number that a kernel reads or writes counted once. Every kernel
// has a second row, naive/..., which times plain loops over the same formula; before either is timed, both
// have run once on the same numbers and agreed.
//
// A row uses the same buffers over and over, so they are as warm as the caches can hold them; in training
// other ops run in between.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cases.h"
#include "engine/kernels/attention/additive_score.h"
#include "engine/kernels/attention/attention_steps.h"
#include "engine/kernels/attention/head_linear.h"
#include "engine/kernels/attention/head_norm.h"
#include "engine/kernels/cross_entropy.h"
#include "engine/kernels/dropout.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/embedding.h"
#include "engine/kernels/gelu.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/pool.h"
#include "engine/kernels/products/backend.h"
#include "engine/kernels/products/linear.h"
#include "engine/kernels/reference_attention.h"
#include "engine/kernels/reference_sequence.h"
#include "engine/kernels/softmax.h"
#include "naive_attention.h"
#include "products_bench.h"
#include "thimble/engine/make_model.h"
#include "thimble/engine/tensor.h"
#include "train/step/micro_batch.h"

namespace {

using namespace thimble;
using bench::Case, bench::Cases, bench::Memory, bench::Pair;
using kernels::Op;

struct BenchModel {
  const char* name;
  std::int64_t d_model, heads, layers, d_ff, length, batch, vocabulary;
};
constexpr BenchModel kModels[] = {{"micro", 32, 2, 1, 64, 16, 32, 16},
                                  {"tiny", 64, 4, 2, 256, 32, 64, 32},
                                  {"small", 128, 8, 4, 512, 64, 64, 64},
                                  {"base", 256, 8, 6, 1024, 128, 32, 128}};

#define PAIR(name) #name, kernels::name, reference::name

struct Sizes {
  std::int64_t sequences, rows, parameters;
  explicit Sizes(const BenchModel& s) {
    TrainConfig train;
    train.batch = s.batch;
    sequences = largest_micro_batch(train, s.length);
    rows = sequences * s.length;
    ModelConfig model;
    model.d_model = s.d_model, model.heads = s.heads, model.layers = s.layers, model.d_ff = s.d_ff;
    parameters = static_cast<std::int64_t>(
        make_model(model, {s.vocabulary, s.length}, Storage::shapes)->parameters().count());
  }
};

double product_flops(std::int64_t m, std::int64_t n, std::int64_t k) {
  return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

GradientView empty(MatrixView gradient) { return {gradient, true}; }

std::array<bench::Layer, 5> layers_of(const BenchModel& s) {
  const std::int64_t c = s.d_model, f = s.d_ff;
  return {{{"/qkv", c, 3 * c}, {"/out", c, c}, {"/ff1", c, f}, {"/ff2", f, c}, {"/logits", c, s.vocabulary}}};
}

// Gradients of activations are empty sums, those of parameters are added to, as in training.
void add_products(Cases& cases, const BenchModel& s, const Sizes& sizes) {
  const std::int64_t rows = sizes.rows, c = s.d_model, f = s.d_ff;
  for (const auto& [name, in, out] : layers_of(s)) {
    const double flops = product_flops(rows, in, out);
    cases.add(PAIR(linear_forward), name, flops, [=, in = in, out = out](Memory& m) {
      const MatrixView weight = m.matrix(out, in);
      Real* const memory = m.numbers(kernels::packed_size(in, out)).data();
      return std::tuple(m.matrix(rows, out), m.matrix(rows, in), weight,
                        kernels::pack(memory, weight, Op::transpose), m.matrix(1, out));
    });
    cases.add(PAIR(linear_backward), name, 2 * flops, [=, in = in, out = out](Memory& m) {
      const MatrixView weight = m.matrix(out, in);
      Real* const memory = m.numbers(kernels::packed_size(out, in)).data();
      return std::tuple(empty(m.matrix(rows, in)), m.matrix(out, in), m.matrix(1, out), m.matrix(rows, out),
                        m.matrix(rows, in), weight, kernels::pack(memory, weight, Op::none));
    });
  }
  const double flops = product_flops(rows, c, f);
  cases.add(PAIR(gemm_add), "_nn/ff1", flops, [=](Memory& m) {
    return std::tuple(empty(m.matrix(rows, f)), m.matrix(rows, c), Op::none, m.matrix(c, f), Op::none);
  });
  cases.add(PAIR(gemm_add), "_tn/ff1", flops, [=](Memory& m) {
    return std::tuple(m.matrix(f, c), m.matrix(rows, f), Op::transpose, m.matrix(rows, c), Op::none);
  });
}

AttentionSizes attention_sizes(const BenchModel& s, const Sizes& sizes) {
  const std::int64_t d = s.d_model / s.heads, t = s.length;
  return {s.heads, s.heads, d, d, true, sizes.sequences, t, t};
}

void add_attention(Cases& cases, const BenchModel& s, const Sizes& sizes) {
  const std::int64_t rows = sizes.rows, c = s.d_model, t = s.length, d_key = c / s.heads;
  const std::int64_t weight_rows = rows * s.heads;
  const kernels::AttentionPass pass{
      .sizes = attention_sizes(s, sizes), .scale = 1 / std::sqrt(static_cast<Real>(d_key)), .block = t};
  const double flops = product_flops(rows, t, c);
  const auto parts = [=](auto all) {
    return std::array{all.column_block(0, c), all.column_block(c, c), all.column_block(2 * c, c)};
  };
  // Calls f(inputs, scratch, pass).
  const auto with = [=](Memory& m, const auto& f) {
    const auto [q, k, v] = parts(m.matrix(rows, 3 * c));
    kernels::AttentionPass keeps = pass;
    keeps.kept.full = m.matrix(weight_rows, t);
    return f(kernels::AttentionInputs{q, k, v}, m.scratch(kernels::attention_scratch(pass, true)), keeps);
  };
  cases.add("attention_forward", kernels::attention_forward, naive_attention_forward, "", 2 * flops,
            [=](Memory& m) {
              return with(m, [&](auto... rest) { return std::tuple(m.matrix(rows, c), rest...); });
            });
  cases.add("attention_backward", kernels::attention_backward, naive_attention_backward, "", 4 * flops,
            [=](Memory& m) {
              const auto [dq, dk, dv] = parts(empty(m.matrix(rows, 3 * c)));
              const kernels::AttentionGradients gradients{dv, dq, dk};
              return with(m, [&](auto... rest) { return std::tuple(gradients, m.matrix(rows, c), rest...); });
            });
  cases.add(PAIR(softmax_forward), "", 0,
            [=](Memory& m) { return std::tuple(m.matrix(weight_rows, t), m.matrix(weight_rows, t)); });
  cases.add(PAIR(softmax_backward), "", 0, [=](Memory& m) {
    return std::tuple(empty(m.matrix(weight_rows, t)), m.matrix(weight_rows, t), m.matrix(weight_rows, t));
  });
}

// The other ways to a score, of queries and keys side by side.
void add_scores(Cases& cases, const BenchModel& s, const Sizes& sizes) {
  const std::int64_t rows = sizes.rows, c = s.d_model, t = s.length, d_key = c / s.heads;
  const AttentionSizes additive = attention_sizes(s, sizes);
  const auto scores = [=](Memory& m) { return m.matrix(rows * s.heads, t); };
  const auto scratch = [=](Memory& m) { return m.scratch(d_key * (3 * t + 1)); };
  cases.add(PAIR(additive_score_forward), "", 0, [=](Memory& m) {
    const MatrixView qk = m.matrix(rows, 2 * c);
    return std::tuple(scores(m), qk.column_block(0, c), qk.column_block(c, c), m.matrix(s.heads, d_key),
                      scratch(m), additive);
  });
  cases.add(PAIR(additive_score_backward), "", 0, [=](Memory& m) {
    const MatrixView qk = m.matrix(rows, 2 * c), sum = m.matrix(rows, 2 * c);
    return std::tuple(sum.column_block(0, c), sum.column_block(c, c), m.matrix(s.heads, d_key), scores(m),
                      qk.column_block(0, c), qk.column_block(c, c), m.matrix(s.heads, d_key), scratch(m),
                      additive);
  });
  const double flops = product_flops(rows, c, d_key);
  cases.add(PAIR(head_linear_forward), "", flops, [=](Memory& m) {
    return std::tuple(m.matrix(rows, c), m.matrix(rows, c), m.matrix(c, d_key), s.heads);
  });
  cases.add(PAIR(head_linear_backward), "", 2 * flops, [=](Memory& m) {
    return std::tuple(empty(m.matrix(rows, c)), m.matrix(c, d_key), m.matrix(rows, c), m.matrix(rows, c),
                      m.matrix(c, d_key), s.heads);
  });
  cases.add(PAIR(head_norm_forward), "", 0, [=](Memory& m) {
    return std::tuple(m.matrix(rows, c), m.matrix(rows, s.heads), m.matrix(rows, c), s.heads, Real{1e-5f});
  });
  cases.add(PAIR(head_norm_backward), "", 0, [=](Memory& m) {
    return std::tuple(empty(m.matrix(rows, c)), m.matrix(rows, c), m.matrix(rows, c), m.matrix(rows, s.heads),
                      s.heads);
  });
  const kernels::RotaryColumns turning{0, 2 * c, d_key}, halves{0, 2 * c, d_key, RotaryPairs::halves};
  const auto table = [=](Memory& m) {
    const MatrixView made = m.matrix(t, 2 * d_key);
    kernels::rotary_table(made, 0);
    return made;
  };
  cases.add(PAIR(rotary_forward), "", 0, [=](Memory& m) {
    return std::tuple(m.matrix(rows, 3 * c), m.matrix(rows, 3 * c), table(m), turning);
  });
  cases.add(PAIR(rotary_backward), "", 0, [=](Memory& m) {
    return std::tuple(empty(m.matrix(rows, 3 * c)), m.matrix(rows, 3 * c), table(m), turning);
  });
  cases.add(PAIR(rotary_forward), "halves", 0, [=](Memory& m) {
    return std::tuple(m.matrix(rows, 3 * c), m.matrix(rows, 3 * c), table(m), halves);
  });
}

// Of the feed-forward layer, where they are widest.
void add_activations(Cases& cases, const BenchModel& s, const Sizes& sizes) {
  const auto matrix = [rows = sizes.rows, cols = s.d_ff](Memory& m) { return m.matrix(rows, cols); };
  const auto map = [=](Memory& m) { return std::tuple(matrix(m), matrix(m)); };
  const auto with_derivative = [=](Memory& m) { return std::tuple(matrix(m), matrix(m), matrix(m)); };
  const auto backward = [=](Memory& m) { return std::tuple(empty(matrix(m)), matrix(m), matrix(m)); };
  cases.add(PAIR(gelu_erf_forward), "", 0, with_derivative);
  cases.add(PAIR(gelu_tanh_forward), "", 0, with_derivative);
  cases.add(PAIR(silu_forward), "", 0, with_derivative);
  cases.add(PAIR(mul_forward), "", 0, with_derivative);
  cases.add(PAIR(mul_backward), "", 0, backward);
  cases.add(PAIR(relu_forward), "", 0, map);
  cases.add(PAIR(relu_backward), "", 0, backward);
  cases.add(PAIR(tanh_forward), "", 0, map);
  cases.add(PAIR(tanh_backward), "", 0, backward);
}

// On the residual stream.
void add_residual(Cases& cases, const BenchModel& s, const Sizes& sizes) {
  const std::int64_t rows = sizes.rows, c = s.d_model, length = s.length;
  const auto x = [=](Memory& m) { return m.matrix(rows, c); };
  cases.add(PAIR(layer_norm_forward), "", 0, [=](Memory& m) {
    return std::tuple(x(m), m.matrix(rows, 2), x(m), m.matrix(1, c), m.matrix(1, c), Real{1e-5f});
  });
  // The other branch of the residual has already added to dx.
  cases.add(PAIR(layer_norm_backward), "", 0, [=](Memory& m) {
    return std::tuple(x(m), m.matrix(1, c), m.matrix(1, c), x(m), x(m), m.matrix(1, c), m.matrix(rows, 2));
  });
  cases.add(PAIR(rms_norm_forward), "", 0, [=](Memory& m) {
    return std::tuple(x(m), m.matrix(rows, 1), x(m), m.matrix(1, c), Real{1e-5f});
  });
  cases.add(PAIR(rms_norm_backward), "", 0, [=](Memory& m) {
    return std::tuple(x(m), m.matrix(1, c), x(m), x(m), m.matrix(1, c), m.matrix(rows, 1));
  });
  cases.add(PAIR(add_forward), "", 0, [=](Memory& m) { return std::tuple(x(m), x(m), x(m)); });
  cases.add(PAIR(accumulate), "/add", 0, [=](Memory& m) { return std::tuple(empty(x(m)), x(m)); });
  cases.add(PAIR(scale_forward), "", 0, [=](Memory& m) { return std::tuple(x(m), x(m), Real{2}); });
  cases.add(PAIR(scale_backward), "", 0, [=](Memory& m) { return std::tuple(empty(x(m)), x(m), Real{2}); });
  cases.add(PAIR(dropout_factors), "", 0, [=](Memory& m) {
    const kernels::DropoutKey key{.random = {1, Stream::dropout}, .step = 2, .first_sample = 3, .site = 4};
    return std::tuple(x(m), Real{0.1f}, key, length);
  });
  cases.add(PAIR(add_positions_forward), "", 0,
            [=](Memory& m) { return std::tuple(x(m), x(m), m.matrix(length, c), length); });
  cases.add(PAIR(add_positions_backward), "", 0,
            [=](Memory& m) { return std::tuple(m.matrix(length, c), x(m), length); });
}

// Over time: a convolution's windows, and one step of a recurrent net.
void add_sequence(Cases& cases, const BenchModel& s, const Sizes& sizes) {
  const std::int64_t rows = sizes.rows, c = s.d_model, n = sizes.sequences;
  const kernels::UnfoldSizes unfolded{.time = s.length, .window = 3, .before = 1};
  cases.add(PAIR(unfold_forward), "", 0,
            [=](Memory& m) { return std::tuple(m.matrix(rows, 3 * c), m.matrix(rows, c), unfolded); });
  cases.add(PAIR(unfold_backward), "", 0,
            [=](Memory& m) { return std::tuple(empty(m.matrix(rows, c)), m.matrix(rows, 3 * c), unfolded); });
  const auto gates = [=](Memory& m) { return m.matrix(n, 3 * c); };
  const auto state = [=](Memory& m) { return m.matrix(n, c); };
  cases.add(PAIR(gru_cell_forward), "", 0, [=](Memory& m) {
    return std::tuple(state(m), gates(m), gates(m), gates(m), state(m), kernels::GruStep{});
  });
  cases.add(PAIR(gru_cell_backward), "", 0, [=](Memory& m) {
    return std::tuple(empty(gates(m)), empty(gates(m)), state(m), state(m), gates(m), state(m), gates(m),
                      kernels::GruStep{});
  });
}

// From tokens to the residual stream, and from there to the loss.
void add_ends(Cases& cases, const BenchModel& s, const Sizes& sizes) {
  const std::int64_t rows = sizes.rows, c = s.d_model, v = s.vocabulary, n = sizes.sequences, t = s.length;
  cases.add(PAIR(embedding_forward), "", 0,
            [=](Memory& m) { return std::tuple(m.matrix(rows, c), m.matrix(v, c), m.tokens(rows, v)); });
  cases.add(PAIR(embedding_backward), "", 0,
            [=](Memory& m) { return std::tuple(m.matrix(v, c), m.matrix(rows, c), m.tokens(rows, v)); });
  cases.add(PAIR(pool_forward), "", 0,
            [=](Memory& m) { return std::tuple(m.matrix(n, c), m.matrix(rows, c), m.matrix(n, t)); });
  cases.add(PAIR(pool_backward), "", 0,
            [=](Memory& m) { return std::tuple(empty(m.matrix(rows, c)), m.matrix(n, c), m.matrix(n, t)); });
  cases.add(PAIR(cross_entropy_forward), "", 0, [=](Memory& m) {
    return std::tuple(m.matrix(rows, v), m.matrix(rows, v), m.tokens(rows, v), Real{0}, Real{0.5f});
  });
}

// On all parameters at once.
void add_update(Cases& cases, const Sizes& sizes) {
  const std::int64_t n = sizes.parameters;
  cases.add(PAIR(accumulate), "/shards", 0,
            [=](Memory& m) { return std::tuple(m.matrix(1, n), m.matrix(1, n)); });
  cases.add(PAIR(sum_of_squares), "", 0, [=](Memory& m) { return std::tuple(m.numbers(n)); });
  cases.add(PAIR(adam_step), "", 0, [=](Memory& m) {
    // No factor is neutral, so that the check sees them all.
    const kernels::AdamFactors factors{.lr = Real{0.1f},
                                       .beta1 = Real{0.9f},
                                       .beta2 = Real{0.99f},
                                       .root_correction = 2,
                                       .epsilon = Real{0.01f},
                                       .shrink = Real{0.99f},
                                       .l2 = Real{0.1f},
                                       .gradient_scale = Real{0.5f}};
    return std::tuple(m.numbers(n), m.numbers(n), m.numbers(n, true), m.numbers(n), factors);
  });
}

std::vector<Case> cases_of(const BenchModel& model) {
  const Sizes sizes(model);
  Cases cases(model.name);
  add_products(cases, model, sizes);
  add_attention(cases, model, sizes);
  add_scores(cases, model, sizes);
  add_activations(cases, model, sizes);
  add_residual(cases, model, sizes);
  add_sequence(cases, model, sizes);
  add_ends(cases, model, sizes);
  add_update(cases, sizes);
  return cases.take();
}

// Whether a is b up to rounding: 1e-4 of b or, where terms cancel, of a typical element.
bool close(double a, double b, double typical) {
  return std::isfinite(b) && std::abs(a - b) <= 1e-4 * std::max(std::abs(b), typical);
}

[[noreturn]] void fail(const Case& item, double kernel, double naive, const std::string& where) {
  fmt::print(stderr, "thimble_bench: {}: the kernel gives {}, the naive loops {} ({})\n", item.name, kernel,
             naive, where);
  std::exit(1);
}

// Runs both on the same numbers and compares everything in memory.
void check(const Case& item, const Pair& pair, Memory& memory) {
  const Memory::Buffers before = memory.buffers();
  const double result = pair.kernel();
  const Memory::Buffers actual = memory.buffers();
  memory.restore(before);
  const double naive_result = pair.naive();
  if (!close(result, naive_result, 0)) fail(item, result, naive_result, "returned");
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const auto& expected = memory.buffers()[i];
    const double squares = reference::sum_of_squares(expected);
    const double typical = std::sqrt(squares / static_cast<double>(expected.size()));
    for (std::size_t j = 0; j < expected.size(); ++j) {
      if (!close(actual[i][j], expected[j], typical))
        fail(item, actual[i][j], expected[j], fmt::format("buffer {}, element {}", i, j));
    }
  }
  memory.restore(before);
}

// Only the last case stays in memory: its two rows follow each other, and each is run several times.
const Pair& prepare(const Case& item) {
  static const Case* last = nullptr;
  static Memory memory;
  static Pair pair;
  if (last != &item) {
    memory = {};
    pair = item.make(memory);
    check(item, pair, memory);
    last = &item;
  }
  return pair;
}

void run(benchmark::State& state, const Case& item, bool naive) {
  const Pair& pair = prepare(item);
  const auto& call = naive ? pair.naive : pair.kernel;
  for (auto _ : state) {
    benchmark::DoNotOptimize(call());
    benchmark::ClobberMemory();
  }
  const double amount = item.flops > 0 ? item.flops : pair.bytes;
  state.counters[item.flops > 0 ? "FLOP" : "bytes"] = {amount, benchmark::Counter::kIsIterationInvariantRate};
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  if (uses_openblas()) {
    fmt::print(stderr,
               "thimble_bench: it times thimble's own products beside OpenBLAS's; unset THIMBLE_GEMM\n");
    return 2;
  }
  std::vector<Case> cases;
  for (const BenchModel& model : kModels) std::ranges::move(cases_of(model), std::back_inserter(cases));
  for (const Case& item : cases) {
    for (const bool naive : {false, true}) {
      benchmark::RegisterBenchmark(((naive ? "naive/" : "") + item.name).c_str(),
                                   [&item, naive](benchmark::State& state) { run(state, item, naive); });
    }
  }
  for (const BenchModel& model : kModels)
    bench::add_products(model.name, Sizes(model).rows, layers_of(model));
  return benchmark::RunSpecifiedBenchmarks() > 0 ? 0 : 2;
}
