#include "engine/model/encoder_decoder.h"

#include "engine/model/decoder_state.h"
#include "thimble/engine/decoding.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

std::uint32_t layer_sites(const ModelConfig& config, std::uint32_t of_a_layer) {
  return static_cast<std::uint32_t>(config.layers) * of_a_layer;
}

std::vector<DecoderLayer> decoder_layers(ParameterStore& store, const ModelConfig& config,
                                         std::uint32_t first_dropout_site) {
  std::vector<DecoderLayer> layers;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const auto site = first_dropout_site + static_cast<std::uint32_t>(l) * DecoderLayer::kDropoutSites;
    layers.emplace_back(store, l, config, site);
  }
  return layers;
}

AttentionConfig with_mask(AttentionConfig config, Mask mask) {
  config.mask = mask;
  return config;
}

}  // namespace

DecoderLayer::DecoderLayer(ParameterStore& store, std::int64_t index, const ModelConfig& config,
                           std::uint32_t first_dropout_site)
    : name(fmt::format("decoder.layers.{}", index)),
      block(static_cast<std::int32_t>(config.layers + index)),
      self_attn(store, name + ".self_attn", config.d_model, config.heads,
                with_mask(config.attention, Mask::causal), config.positions, first_dropout_site,
                config.layers + 2 * index),
      multihead_attn(store, name + ".multihead_attn", config.d_model, config.heads,
                     with_mask(config.attention, Mask::none), Positions::none, first_dropout_site + 1,
                     self_attn.layer + 1),
      feed_forward(
          optional_if<FeedForward>(config.d_ff > 0, store, name, block, config, first_dropout_site + 2)),
      norm1(store, name + ".norm1", config),
      norm2(store, name + ".norm2", config),
      norm3(optional_if<Norm>(config.d_ff > 0, store, name + ".norm3", config)),
      order(config.norm),
      dropout1{static_cast<Real>(config.dropout), first_dropout_site + 4},
      dropout2{static_cast<Real>(config.dropout), first_dropout_site + 5} {}

void DecoderLayer::init(ParameterStore& store, std::uint64_t seed) const {
  self_attn.init(store, seed);
  multihead_attn.init(store, seed);
  if (feed_forward) feed_forward->init(store, seed);
  norm1.init(store);
  norm2.init(store);
  if (norm3) norm3->init(store);
}

template <class Attend>
Var DecoderLayer::run(Var x, const Attend& attend, Var keys_values,
                      std::span<const std::int32_t> source_lengths, const ForwardOptions& options,
                      std::span<const std::int32_t> rows) const {
  const auto sublayer = [&](Var input, const Norm& norm, SiteKind site, const auto& f) {
    const bool pre = order == NormOrder::pre;
    const Var sum = add(input, f(pre ? norm(input) : input));
    return hook_point(options.hooks, {site, block}, pre ? sum : norm(sum));
  };
  x = sublayer(x, norm1, SiteKind::residual_mid, [&](Var y) {
    if (order == NormOrder::pre) y = hook_point(options.hooks, {SiteKind::normalized, block}, y);
    return hook_point(options.hooks, {SiteKind::attention_output, block}, dropout1(attend(y), options));
  });
  x = sublayer(x, norm2, SiteKind::residual_cross, [&](Var y) {
    const Var mixed = multihead_attn.attend(multihead_attn.project(y, keys_values, options.hooks),
                                            source_lengths, 0, options);
    return hook_point(options.hooks, {SiteKind::cross_output, block}, dropout2(mixed, options));
  });
  const bool early = !feed_forward || feed_forward->dropout_out.p == 0;
  if (!rows.empty() && early) x = select_rows(x, rows);
  if (feed_forward)
    x = sublayer(x, *norm3, SiteKind::residual_out, [&](Var y) { return (*feed_forward)(y, options); });
  return rows.empty() || early ? x : select_rows(x, rows);
}

Var DecoderLayer::operator()(Var x, std::span<const std::int32_t> lengths, Var memory,
                             std::span<const std::int32_t> source_lengths, const ForwardOptions& options,
                             std::span<const std::int32_t> rows) const {
  x.tape().set_layer(name.c_str());
  const auto attend = [&](Var y) { return self_attn(y, lengths, options); };
  return run(x, attend, multihead_attn.keys_values(memory), source_lengths, options, rows);
}

Var DecoderLayer::decode_step(Var x, Tensor& cache, std::int64_t at, Var keys_values,
                              std::span<const std::int32_t> source_lengths,
                              const ForwardOptions& options) const {
  const auto attend = [&](Var y) { return self_attn.decode_step(y, cache, at, options); };
  return run(x, attend, keys_values, source_lengths, options, {});
}

EncoderDecoder::EncoderDecoder(const ModelConfig& config, const ModelSizes& sizes, Storage storage)
    : Model(config, sizes, storage),
      source_(store_, "source_", config, vocabulary(), sizes_.source_length, SiteKind::source_embedding, 0),
      target_(store_, "", config, vocabulary(), max_length(), SiteKind::embedding,
              InputEmbedding::kDropoutSites),
      encoder_(encoder_layers(store_, config, 2 * InputEmbedding::kDropoutSites)),
      encoder_norm_(final_norm(store_, "encoder.norm", config)),
      decoder_(decoder_layers(
          store_, config,
          2 * InputEmbedding::kDropoutSites + layer_sites(config, EncoderLayer::kDropoutSites))),
      decoder_norm_(final_norm(store_, "decoder.norm", config)),
      output_(store_, config, vocabulary(), target_.tokens()) {}

void EncoderDecoder::init(std::uint64_t seed) {
  source_.init(store_, seed);
  target_.init(store_, seed);
  for (const EncoderLayer& layer : encoder_) layer.init(store_, seed);
  if (encoder_norm_) encoder_norm_->init(store_);
  for (const DecoderLayer& layer : decoder_) layer.init(store_, seed);
  if (decoder_norm_) decoder_norm_->init(store_);
  output_.init(store_, seed);
}

Var EncoderDecoder::encode(Tape& tape, const ModelInput& input, const ForwardOptions& options) const {
  tape.set_layer("source_embedding");
  return encode_from(0, source_(tape, input.sources, input.source_length, options), input, options);
}

Var EncoderDecoder::encode_from(std::size_t first, Var x, const ModelInput& input,
                                const ForwardOptions& options) const {
  for (std::size_t l = first; l < encoder_.size(); ++l) x = encoder_[l](x, input.source_lengths, options);
  x.tape().set_layer("encoder");
  if (encoder_norm_) x = (*encoder_norm_)(x);
  return hook_point(options.hooks, {SiteKind::encoder_output}, x);
}

Var EncoderDecoder::operator()(Tape& tape, const ModelInput& input, const ForwardOptions& options) const {
  const Var memory = encode(tape, input, options);
  tape.set_layer("embedding");
  return decode_from(0, target_(tape, input.tokens, input.length, options), memory, input, options);
}

Var EncoderDecoder::from_block(std::size_t block, Var x, Var memory, const ModelInput& input,
                               const ForwardOptions& options) const {
  if (block >= encoder_.size()) return decode_from(block - encoder_.size(), x, memory, input, options);
  memory = encode_from(block, x, input, options);
  x.tape().set_layer("embedding");
  return decode_from(0, target_(x.tape(), input.tokens, input.length, options), memory, input, options);
}

Site EncoderDecoder::input_site(std::size_t block) const {
  if (block == 0) return {SiteKind::source_embedding};
  if (block == encoder_.size()) return {SiteKind::embedding};
  const bool bare =
      block > encoder_.size() && config_.d_ff == 0;  // layers of the decoder end with cross-attention
  return {bare ? SiteKind::residual_cross : SiteKind::residual_out, static_cast<std::int32_t>(block) - 1};
}

Var EncoderDecoder::decode_from(std::size_t first, Var x, Var memory, const ModelInput& input,
                                const ForwardOptions& options) const {
  Tape& tape = x.tape();
  for (std::size_t l = first; l < decoder_.size(); ++l)
    x = decoder_[l](x, input.lengths, memory, input.source_lengths, options,
                    l + 1 == decoder_.size() ? input.rows : std::span<const std::int32_t>());
  if (first == decoder_.size() && !input.rows.empty()) x = select_rows(x, input.rows);
  tape.set_layer("decoder");
  if (decoder_norm_) x = (*decoder_norm_)(x);
  x = hook_point(options.hooks, {SiteKind::decoder_output}, x);
  tape.set_layer("output");
  return hook_point(options.hooks, {SiteKind::logits}, output_(x));
}

const MultiHeadAttention* EncoderDecoder::attention(const AttentionLayer& layer) const {
  const auto index = static_cast<std::size_t>(layer.index);
  if (layer.queries_source) return &*encoder_[index].self_attn;
  return layer.cross() ? &decoder_[index].multihead_attn : &decoder_[index].self_attn;
}

// A decoder state that stores the keys and values of every layer, of the memory and of the hypotheses.
class EncoderDecoder::CachedState final : public DecoderState {
 public:
  CachedState(const EncoderDecoder& model, const ModelInput& sources)
      : model_(model),
        hypotheses_(std::ssize(sources.sources) / sources.source_length),
        source_lengths_(sources.source_lengths.begin(), sources.source_lengths.end()) {
    tape_.bind(model.parameters(), {});
    const Var memory = model.encode(tape_, sources, {});
    for (const DecoderLayer& layer : model.decoder_) {
      memories_.push_back(detach(layer.multihead_attn.keys_values(memory)));
      caches_.emplace_back(Shape{hypotheses_, model.max_length(), layer.self_attn.cache_width()});
    }
  }

  Tensor next(std::span<const std::int32_t> tokens) override {
    require_tokens(tokens, hypotheses_);
    tape_.rewind();
    Var x = model_.target_(tape_, tokens, 1, {}, at_);
    for (std::size_t l = 0; l < caches_.size(); ++l)
      x = model_.decoder_[l].decode_step(x, caches_[l], at_, tape_.constant(memories_[l]), source_lengths_,
                                         {});
    ++at_;
    if (model_.decoder_norm_) x = (*model_.decoder_norm_)(x);
    return Tensor({hypotheses_, model_.vocabulary()}, detach(model_.output_(x)).values());
  }

  void reorder(std::span<const std::int32_t> from) override {
    hypotheses_ = std::ssize(from);
    for (std::vector<Tensor>* all : {&memories_, &caches_})
      for (Tensor& tensor : *all) tensor = gather_rows(tensor, from);
    source_lengths_ = gather_rows(source_lengths_, from);
  }

 private:
  const EncoderDecoder& model_;
  std::int64_t hypotheses_, at_ = 0;
  std::vector<std::int32_t> source_lengths_;
  std::vector<Tensor> memories_, caches_;  // by layer
  Tape tape_{Tape::Mode::inference};
};

std::unique_ptr<DecoderState> EncoderDecoder::start_decoding(const ModelInput& sources) const {
  return std::make_unique<CachedState>(*this, sources);
}

double EncoderDecoder::plan_decoding(Tape& tape, const ModelInput& sources) const {
  const Var memory = encode(tape, sources, {});
  double kept = 0;
  for (const DecoderLayer& layer : decoder_) {
    const Shape cache{memory.shape()[0], max_length(), layer.self_attn.cache_width()};
    // decode_step() copies the cache.
    kept += static_cast<double>(layer.multihead_attn.keys_values(memory).shape().elements()) +
            2 * static_cast<double>(cache.elements());
  }
  return kept;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
