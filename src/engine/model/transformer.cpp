#include "engine/model/transformer.h"

#include <cmath>

#include "engine/model/decoder_state.h"
#include "thimble/engine/decoding.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

Var activate(Activation kind, Var x) {
  switch (kind) {
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::tanh:
      return tanh(x);
    case Activation::silu:
      return silu(x);
  }
  throw Error("activation: unknown kind");
}

Real as_real(double x) { return static_cast<Real>(x); }

}  // namespace

FeedForward::FeedForward(ParameterStore& store, const std::string& name, std::int64_t the_block,
                         const ModelConfig& config, std::uint32_t first_dropout_site)
    : block(static_cast<std::int32_t>(the_block)),
      linear1(store, name + ".linear1", config.d_model, config.d_ff, config.bias),
      linear2(store, name + ".linear2", config.d_ff, config.d_model, config.bias),
      gate(
          optional_if<Linear>(config.gated, store, name + ".gate", config.d_model, config.d_ff, config.bias)),
      activation(config.activation),
      dropout_hidden{as_real(config.dropout), first_dropout_site},
      dropout_out{as_real(config.dropout), first_dropout_site + 1} {}

void FeedForward::init(ParameterStore& store, std::uint64_t seed) const {
  linear1.init(store, seed);
  linear2.init(store, seed);
  if (gate) gate->init(store, seed);
}

Var FeedForward::operator()(Var x, const ForwardOptions& options) const {
  x = hook_point(options.hooks, {SiteKind::feed_forward_input, block}, x);
  Var hidden =
      activate(activation, hook_point(options.hooks, {SiteKind::feed_forward_pre, block}, linear1(x)));
  if (gate) hidden = mul(hidden, hook_point(options.hooks, {SiteKind::feed_forward_gate, block}, (*gate)(x)));
  hidden = hook_point(options.hooks, {SiteKind::feed_forward_post, block}, hidden);
  const Var y = dropout_out(linear2(dropout_hidden(hidden, options)), options);
  return hook_point(options.hooks, {SiteKind::feed_forward_output, block}, y);
}

EncoderLayer::EncoderLayer(ParameterStore& store, const std::string& layer_name, std::int64_t number,
                           const ModelConfig& config, std::uint32_t first_dropout_site)
    : name(layer_name),
      block(static_cast<std::int32_t>(number)),
      self_attn(optional_if<MultiHeadAttention>(config.mixer == Mixer::attention, store, name + ".self_attn",
                                                config.d_model, config.heads, config.attention,
                                                config.positions, first_dropout_site, number, config.bias)),
      conv(optional_if<Convolution>(config.mixer == Mixer::convolution, store, name + ".conv", config.d_model,
                                    config.window, config.attention.mask == Mask::causal, config.bias)),
      feed_forward(
          optional_if<FeedForward>(config.d_ff > 0, store, name, number, config, first_dropout_site + 2)),
      norm1(store, name + ".norm1", config),
      norm2(optional_if<Norm>(config.d_ff > 0, store, name + ".norm2", config)),
      order(config.norm),
      dropout1{as_real(config.dropout), first_dropout_site + 1} {}

void EncoderLayer::init(ParameterStore& store, std::uint64_t seed) const {
  if (self_attn) self_attn->init(store, seed);
  if (conv) conv->init(store, seed);
  if (feed_forward) feed_forward->init(store, seed);
  norm1.init(store);
  if (norm2) norm2->init(store);
}

Var EncoderLayer::operator()(Var x, std::span<const std::int32_t> lengths, const ForwardOptions& options,
                             std::span<const std::int32_t> rows) const {
  x.tape().set_layer(name.c_str());
  const auto mix = [&](Var y) { return self_attn ? (*self_attn)(y, lengths, options) : (*conv)(y, lengths); };
  return run(x, mix, options, rows);
}

Var EncoderLayer::decode_step(Var x, Tensor& cache, std::int64_t at) const {
  return run(x, [&](Var y) { return self_attn->decode_step(y, cache, at, {}); }, {}, {});
}

template <class Mix>
Var EncoderLayer::run(Var x, const Mix& mix, const ForwardOptions& options,
                      std::span<const std::int32_t> rows) const {
  const bool pre = order == NormOrder::pre;
  const Var mixed = mix(pre ? hook_point(options.hooks, {SiteKind::normalized, block}, norm1(x)) : x);
  x = add(x, hook_point(options.hooks, {SiteKind::attention_output, block}, dropout1(mixed, options)));
  if (!pre) x = norm1(x);
  x = hook_point(options.hooks, {SiteKind::residual_mid, block}, x);
  const bool early = !feed_forward || feed_forward->dropout_out.p == 0;
  if (!rows.empty() && early) x = select_rows(x, rows);
  if (feed_forward) {
    x = add(x, (*feed_forward)(pre ? (*norm2)(x) : x, options));
    if (!pre) x = (*norm2)(x);
  }
  if (!rows.empty() && !early) x = select_rows(x, rows);
  return hook_point(options.hooks, {SiteKind::residual_out, block}, x);
}

std::vector<EncoderLayer> encoder_layers(ParameterStore& store, const ModelConfig& config,
                                         std::uint32_t first_dropout_site) {
  std::vector<EncoderLayer> layers;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const auto site = first_dropout_site + static_cast<std::uint32_t>(l) * EncoderLayer::kDropoutSites;
    layers.emplace_back(store, fmt::format("encoder.layers.{}", l), l, config, site);
  }
  return layers;
}

std::optional<Norm> final_norm(ParameterStore& store, const std::string& name, const ModelConfig& config) {
  if (config.norm == NormOrder::post || !config.norm_final) return std::nullopt;
  return Norm(store, name, config);
}

Transformer::Transformer(const ModelConfig& config, const ModelSizes& sizes, Storage storage)
    : Model(config, sizes, storage),
      input_(store_, "", config, vocabulary(), max_length(), SiteKind::embedding, 0),
      layers_(encoder_layers(store_, config, InputEmbedding::kDropoutSites)),
      norm_(final_norm(store_, "encoder.norm", config)),
      output_(store_, config, outputs(), input_.tokens()) {}

void Transformer::init(std::uint64_t seed) {
  input_.init(store_, seed);
  for (const EncoderLayer& layer : layers_) layer.init(store_, seed);
  if (norm_) norm_->init(store_);
  output_.init(store_, seed);
  if (config_.init_std > 0) init_matrices(seed);
}

void Transformer::init_matrices(std::uint64_t seed) {
  const double scale = config_.init_scaled ? 1 / std::sqrt(2.0 * static_cast<double>(config_.layers)) : 1;
  for (int i = 0; i < std::ssize(store_.entries()); ++i) {
    const Parameter p{i};
    const auto& [name, shape, offset] = store_.entry(p);
    const bool is_residual = name.find(".out_proj.") != name.npos || name.ends_with(".linear2.weight") ||
                             name.ends_with(".conv.weight");
    if (shape.rank() > 1)
      init_normal(store_, p, seed, config_.init_std * (is_residual ? scale : 1));
    else if (name.ends_with("bias"))
      init_constant(store_, p, 0);
  }
}

Var Transformer::operator()(Tape& tape, const ModelInput& input, const ForwardOptions& options) const {
  tape.set_layer("embedding");
  return from_block(0, input_(tape, input.tokens, input.length, options), {}, input, options);
}

// A decoder state that stores the keys and values of every layer.
class Transformer::CachedState final : public DecoderState {
 public:
  CachedState(const Transformer& model, const ModelInput& input)
      : model_(model), hypotheses_(std::ssize(input.tokens) / input.length) {
    tape_.bind(model.parameters(), {});
    for (const EncoderLayer& layer : model.layers_)
      caches_.emplace_back(Shape{hypotheses_, model.max_length(), layer.self_attn->cache_width()});
    std::vector<std::int32_t> column(static_cast<std::size_t>(hypotheses_));
    for (std::int64_t t = 0; t + 1 < input.length; ++t) {
      for (std::size_t i = 0; i < column.size(); ++i)
        column[i] = input.tokens[i * static_cast<std::size_t>(input.length) + static_cast<std::size_t>(t)];
      read(column);
    }
  }

  Tensor next(std::span<const std::int32_t> tokens) override {
    require_tokens(tokens, hypotheses_);
    Var x = read(tokens);
    if (model_.norm_) x = (*model_.norm_)(x);
    return Tensor({hypotheses_, model_.outputs()}, detach(model_.output_(x)).values());
  }

  void reorder(std::span<const std::int32_t> from) override {
    hypotheses_ = std::ssize(from);
    for (Tensor& cache : caches_) cache = gather_rows(cache, from);
  }

 private:
  Var read(std::span<const std::int32_t> tokens) {
    tape_.rewind();
    Var x = model_.input_(tape_, tokens, 1, {}, at_);
    for (std::size_t l = 0; l < caches_.size(); ++l) x = model_.layers_[l].decode_step(x, caches_[l], at_);
    ++at_;
    return x;
  }

  const Transformer& model_;
  std::int64_t hypotheses_, at_ = 0;
  std::vector<Tensor> caches_;  // by layer
  Tape tape_{Tape::Mode::inference};
};

std::unique_ptr<DecoderState> Transformer::start_decoding(const ModelInput& input) const {
  require<Error>(config_.mixer == Mixer::attention && config_.attention.mask == Mask::causal &&
                     config_.output.per != OutputPer::sequence,
                 "transformer: generates sequences only with causal attention and an output per position");
  return std::make_unique<CachedState>(*this, input);
}

double Transformer::plan_decoding(Tape& tape, const ModelInput& input) const {
  const std::int64_t sequences = std::ssize(input.tokens) / input.length;
  (*this)(tape, {.tokens = input.tokens.first(static_cast<std::size_t>(sequences)), .length = 1}, {});
  double kept = 0;
  for (const EncoderLayer& layer : layers_)  // decode_step() copies the cache of several hypotheses
    kept += 2 * static_cast<double>(sequences * max_length() * layer.self_attn->cache_width());
  return kept;
}

const MultiHeadAttention* Transformer::attention(const AttentionLayer& layer) const {
  return &*layers_[static_cast<std::size_t>(layer.index)].self_attn;
}

Site Transformer::input_site(std::size_t block) const {
  if (block == 0) return {SiteKind::embedding};
  return {SiteKind::residual_out, static_cast<std::int32_t>(block) - 1};
}

Var Transformer::from_block(std::size_t block, Var x, Var, const ModelInput& input,
                            const ForwardOptions& options) const {
  require<ShapeError>(input.rows.empty() || config_.output.per != OutputPer::sequence,
                      "transformer: one output per sequence has no positions to choose from");
  Tape& tape = x.tape();
  for (std::size_t l = block; l < layers_.size(); ++l) {
    x = layers_[l](x, input.lengths, options,
                   l + 1 == layers_.size() ? input.rows : std::span<const std::int32_t>());
  }
  if (block == layers_.size() && !input.rows.empty()) x = select_rows(x, input.rows);
  tape.set_layer("encoder");
  if (norm_) x = (*norm_)(x);
  x = hook_point(options.hooks, {SiteKind::encoder_output}, x);
  tape.set_layer("output");
  if (config_.output.per == OutputPer::sequence) {
    switch (config_.output.pooling) {
      case Pooling::mean:
        x = mean_pool(x, input.lengths);
        break;
      case Pooling::first:
        x = first_pool(x);
        break;
      case Pooling::last:
        x = last_pool(x, input.lengths);
        break;
    }
  }
  return hook_point(options.hooks, {SiteKind::logits}, output_(x));
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
