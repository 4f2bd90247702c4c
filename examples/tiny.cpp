// The whole idea in one file: a transformer with one attention block learns to reverse sequences. Shapes: B sequences
// of T tokens, C channels, F hidden channels, V tokens.
#include <thimble/engine/ops.h>
#include <thimble/engine/optimizer.h>
#include <thimble/engine/random.h>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace thimble;

namespace {

constexpr std::int64_t B = 32, T = 8, C = 32, F = 64, V = 10, kHeads = 2;
constexpr int kSteps = 300;
constexpr std::uint64_t kSeed = 1;

// The parameters are parts of one buffer; a gradient buffer of the same layout belongs to it.
struct Model {
  ParameterStore store;
  Parameter tokens = matrix("tokens", V, C), positions = matrix("positions", T, C);
  Parameter projection = matrix("projection", 3 * C, C),
            projection_bias = vector("projection_bias", 3 * C, 0);
  Parameter mix = matrix("mix", C, C), mix_bias = vector("mix_bias", C, 0);
  Parameter scale1 = vector("scale1", C, 1), shift1 = vector("shift1", C, 0);
  Parameter up = matrix("up", F, C), up_bias = vector("up_bias", F, 0);
  Parameter down = matrix("down", C, F), down_bias = vector("down_bias", C, 0);
  Parameter scale2 = vector("scale2", C, 1), shift2 = vector("shift2", C, 0);
  Parameter output = matrix("output", V, C), output_bias = vector("output_bias", V, 0);

  // A weight (out, in), as in PyTorch, with normal initial values.
  Parameter matrix(const char* name, std::int64_t rows, std::int64_t columns) {
    const Parameter p = store.add(name, {rows, columns});
    init_normal(store, p, kSeed, 1 / std::sqrt(static_cast<double>(C)));
    return p;
  }
  Parameter vector(const char* name, std::int64_t size, Real value) {
    const Parameter p = store.add(name, {size});
    init_constant(store, p, value);
    return p;
  }

  // Records the logits (B, T, V) of tokens (B, T).
  Var operator()(Tape& tape, const std::vector<std::int32_t>& input) const {
    const auto use = [&](Parameter p) { return tape.parameter(p); };
    Var x = add_positions(embedding(use(tokens), input, T), use(positions));  // (B, T, C)

    // Each position asks with its query, is found by its key, and hands out its value.
    const Var qkv = linear(x, use(projection), use(projection_bias));  // (B, T, 3C)
    const AttentionOptions heads{.heads = kHeads, .kv_heads = kHeads};
    const Var mixed = attention({qkv, 0, C}, {qkv, C, C}, {qkv, 2 * C, C}, heads);  // (B, T, C)
    x = add(x, linear(mixed, use(mix), use(mix_bias)));
    x = layer_norm(x, use(scale1), use(shift1));

    const Var hidden = relu(linear(x, use(up), use(up_bias)));  // (B, T, F)
    x = add(x, linear(hidden, use(down), use(down_bias)));
    x = layer_norm(x, use(scale2), use(shift2));
    return linear(x, use(output), use(output_bias));
  }
};

// Sequences of random tokens; the label of a position is the token of its mirror image.
struct Sequences {
  std::vector<std::int32_t> tokens = std::vector<std::int32_t>(B * T), labels = tokens;

  explicit Sequences(int step) {
    const Random random(kSeed, Stream::data);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<std::int32_t>(random.below(V, i, static_cast<std::uint32_t>(step)));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::size_t first = i / T * T;
      labels[i] = tokens[first + (T - 1 - (i - first))];
    }
  }
};

}  // namespace

int main() {
  Model model;
  Optimizer optimizer({.name = OptimizerKind::adam, .lr = 3e-3}, model.store);
  std::vector<Real> gradients(model.store.size());
  Tape tape;
  for (int step = 1; step <= kSteps; ++step) {
    const Sequences batch(step);
    gradients.assign(gradients.size(), 0);
    tape.rewind();
    tape.bind(model.store, gradients);
    const Var loss = cross_entropy(model(tape, batch.tokens), batch.labels);
    tape.backward(loss);
    if (step == 1 || step % 50 == 0)
      std::printf("step %3d  loss %.4f\n", step, static_cast<double>(loss.item()));
    optimizer.step(model.store.values(), gradients);
  }
}
