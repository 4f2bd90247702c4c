#include "fuzz/architecture.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>

#include "thimble/engine/error.h"
#include "train/step/plan.h"

namespace thimble {
namespace {

// The random numbers of one attempt at an architecture.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t attempt) : rng_(Random(seed, Stream::gradcheck), attempt, 0) {}

  std::int64_t below(std::int64_t n) { return rng_.below(n); }
  bool chance(std::int64_t percent) { return below(100) < percent; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(std::ssize(values))];
  }
  // Returns a size: mostly a few, sometimes one beside a multiple of the lanes of a vector.
  std::int64_t size() {
    return chance(80)   ? pick<std::int64_t>({3, 4, 5, 6, 7, 8, 9})
           : chance(25) ? pick<std::int64_t>({1, 2})
                        : pick<std::int64_t>({12, 15, 16, 17, 24, 31, 32, 33});
  }

 private:
  SampleRng rng_;
};

void draw_attention(ModelConfig& model, Dice& dice) {
  AttentionConfig& a = model.attention;
  model.heads = dice.pick<std::int64_t>({1, 1, 2, 2, 3, 4, 6});
  a.score = dice.pick({Score::scaled_dot, Score::scaled_dot, Score::dot, Score::general, Score::additive,
                       Score::cosine, Score::linear});
  a.combine = dice.pick({Combine::concat, Combine::concat, Combine::sum});
  a.dropout = dice.pick({0.0, 0.0, 0.25});
  a.in_proj = !dice.chance(10);
  if (!a.in_proj) {
    model.d_model = model.heads * dice.pick<std::int64_t>({1, 2, 4, 5});
    return;
  }
  a.tie_query_key = dice.chance(15);
  if (!a.tie_query_key && dice.chance(40))
    for (a.kv_heads = 1 + dice.below(model.heads); model.heads % a.kv_heads != 0;) --a.kv_heads;
  if (dice.chance(50) || model.d_model % model.heads != 0) {
    a.d_key = dice.size();
    a.d_value = dice.size();
  }
}

void draw_layers(ModelConfig& model, Dice& dice) {
  model.layers = dice.pick<std::int64_t>({1, 1, 1, 2, 3});
  model.d_ff = dice.chance(15) ? 0 : dice.size();
  model.norm = dice.pick({NormOrder::pre, NormOrder::post});
  model.norm_type = dice.pick({NormType::layer, NormType::rms});
  model.norm_epsilon = dice.pick({1e-5, 1e-5, 1e-3, 0.1});
  model.activation = dice.pick(
      {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::tanh, Activation::silu});
  model.gated = model.d_ff > 0 && dice.chance(30);
  model.positions = dice.pick(
      {Positions::sinusoidal, Positions::learned, Positions::none, Positions::rotary, Positions::alibi});
  if (model.positions == Positions::rotary && dice.chance(50))
    model.attention.rotary = {.layout = RotaryPairs::halves, .base = dice.pick({10000.0, 500.0})};
  if (model.kind == ModelKind::encoder) {
    model.attention.mask = dice.pick({Mask::none, Mask::causal});
    model.mixer = dice.chance(20) ? Mixer::convolution : Mixer::attention;
    model.output.per = dice.pick({OutputPer::position, OutputPer::sequence, OutputPer::next});
    model.output.pooling = dice.pick({Pooling::mean, Pooling::first, Pooling::last});
  }
  if (dice.chance(30)) model.output.hidden = dice.size();
  if (model.mixer == Mixer::convolution)
    model.window = dice.pick<std::int64_t>({1, 2, 3, 4, 5, 9});
  else
    draw_attention(model, dice);
}

void draw_training(TrainConfig& train, Dice& dice) {
  train.batch = 1 + dice.below(9);
  train.shards = 1 + dice.below(std::min<std::int64_t>(train.batch, 4));
  train.label_smoothing = dice.pick({0.0, 0.0, 0.125});
  train.optimizer.name = dice.pick({OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd});
  train.optimizer.weight_decay = dice.pick({0.0, 0.01});
  train.clip_norm = dice.pick({0.0, 1.0});
}

Config draw_config(Dice& dice) {
  Config config;
  ModelConfig& model = config.model;
  model.kind = dice.pick({ModelKind::encoder, ModelKind::encoder, ModelKind::encoder,
                          ModelKind::encoder_decoder, ModelKind::encoder_decoder, ModelKind::recurrent});
  model.d_model = dice.size();
  model.dropout = dice.pick({0.0, 0.0, 0.25, 0.5});
  if (model.kind != ModelKind::encoder) model.output.per = OutputPer::next;
  if (model.kind == ModelKind::recurrent) {
    model.attention.score = dice.pick({Score::scaled_dot, Score::dot, Score::general, Score::additive,
                                       Score::cosine, Score::linear, Score::none});
    if (model.attention.score != Score::none) model.attention.dropout = dice.pick({0.0, 0.0, 0.25});
  } else {
    draw_layers(model, dice);
  }
  config.task.name = model.output.per == OutputPer::sequence ? "majority" : "copy";
  config.task.symbols = 1 + dice.size();
  config.task.length = dice.pick<std::int64_t>({1, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 17, 33});
  // Of more than 256 keys the attention weights are computed a second time.
  if (dice.chance(3)) {
    config.task.length = 250 + dice.below(50);
    model.layers = 1;
  }
  config.task.min_length = dice.below(config.task.length + 1);
  if (dice.chance(10)) model.max_length = 2 * config.task.length + dice.below(3);
  config.data.train = 0;
  draw_training(config.train, dice);
  return config;
}

std::vector<std::int32_t> draw_tokens(std::int64_t count, std::int64_t vocabulary, Dice& dice) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(dice.below(vocabulary));
  return tokens;
}

// Returns a length for each sequence, one of which is `longest`.
std::vector<std::int32_t> draw_lengths(std::int64_t sequences, std::int64_t longest, Dice& dice) {
  std::vector<std::int32_t> lengths;
  for (std::int64_t b = 0; b < sequences; ++b)
    lengths.push_back(static_cast<std::int32_t>(dice.chance(40)   ? longest
                                                : dice.chance(30) ? 1
                                                                  : 1 + dice.below(longest)));
  lengths[static_cast<std::size_t>(dice.below(sequences))] = static_cast<std::int32_t>(longest);
  return lengths;
}

Batch draw_batch(const Config& config, const ModelSizes& sizes, Dice& dice) {
  Batch batch;
  batch.sequences = dice.pick<std::int64_t>({1, 2, 3, 4});
  batch.length = dice.chance(80) ? sizes.length : 1 + dice.below(sizes.length);
  batch.tokens = draw_tokens(batch.sequences * batch.length, sizes.vocabulary, dice);
  batch.lengths = draw_lengths(batch.sequences, batch.length, dice);
  if (sizes.source_length > 0) {
    batch.source_length = dice.chance(80) ? sizes.source_length : 1 + dice.below(sizes.source_length);
    batch.sources = draw_tokens(batch.sequences * batch.source_length, sizes.vocabulary, dice);
    batch.source_lengths = draw_lengths(batch.sequences, batch.source_length, dice);
  }
  const bool per_sequence = config.model.output.per == OutputPer::sequence;
  const std::int64_t labels = per_sequence ? 1 : batch.length;
  for (std::int64_t b = 0; b < batch.sequences; ++b) {
    const std::int64_t valid = per_sequence ? 1 : batch.lengths[static_cast<std::size_t>(b)];
    for (std::int64_t t = 0; t < labels; ++t) {
      const bool labeled = t < valid && (t + 1 == valid || dice.chance(70));
      batch.labels.push_back(labeled ? static_cast<std::int32_t>(dice.below(sizes.vocabulary)) : kIgnore);
      if (!labeled) continue;
      batch.rows.push_back(static_cast<std::int32_t>(b * labels + t));
      batch.row_labels.push_back(batch.labels.back());
    }
  }
  return batch;
}

}  // namespace

Architecture random_architecture(std::uint64_t seed) {
  for (std::uint64_t attempt = 0;; ++attempt) {
    Dice dice(seed, attempt);
    Architecture out{.seed = seed, .config = draw_config(dice), .sizes = {}, .batch = {}};
    try {
      out.config = parse_config(to_yaml(out.config), "architecture");
    } catch (const ConfigError&) {
      continue;
    }
    out.sizes = model_sizes(out.config);
    out.batch = draw_batch(out.config, out.sizes, dice);
    return out;
  }
}

std::string describe(const Architecture& a) {
  const Batch& batch = a.batch;
  std::string text = fmt::format("{}# seed {}: {} sequences of {} tokens, lengths {}, labels {}\n",
                                 to_yaml(a.config), a.seed, batch.sequences, batch.length,
                                 fmt::join(batch.lengths, " "), fmt::join(batch.labels, " "));
  if (batch.source_length > 0)
    text += fmt::format("# sources of {} tokens, lengths {}\n", batch.source_length,
                        fmt::join(batch.source_lengths, " "));
  return text;
}

bool has_numerical_gradients(const Architecture& a, std::int64_t parameters) {
  const std::int64_t tokens = a.batch.sequences * (a.batch.length + a.batch.source_length);
  return tokens <= 64 && (tokens * parameters <= 25'000 || a.seed % 10 == 0);
}

}  // namespace thimble
