#include "engine/model/parts.h"

#include <numeric>
#include <vector>

#include "engine/kernels/embedding.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Norm::Norm(ParameterStore& store, const std::string& name, const ModelConfig& config)
    : kind(config.norm_type == NormType::layer
               ? std::variant<LayerNorm, RmsNorm>(
                     LayerNorm(store, name, config.d_model, config.norm_epsilon,
                               {.weight = config.norm_weight, .bias = config.bias}))
               : std::variant<LayerNorm, RmsNorm>(
                     RmsNorm(store, name, config.d_model, config.norm_epsilon, config.norm_weight))) {}

void Norm::init(ParameterStore& store) const {
  std::visit([&](const auto& norm) { norm.init(store); }, kind);
}

Var Norm::operator()(Var x) const {
  return std::visit([&](const auto& norm) { return norm(x); }, kind);
}

InputEmbedding::InputEmbedding(ParameterStore& store, const std::string& prefix, const ModelConfig& config,
                               std::int64_t vocabulary, std::int64_t length, SiteKind site,
                               std::uint32_t dropout_site)
    : site_(site),
      longest_(length),
      token_std_(config.embedding_std),
      position_std_(config.position_std),
      added_(config.positions == Positions::learned || config.positions == Positions::sinusoidal),
      tokens_(store, prefix + "token_embedding", vocabulary, config.d_model),
      dropout_{static_cast<Real>(config.dropout), dropout_site} {
  if (config.positions == Positions::learned) {
    learned_.emplace(store, prefix + "position_embedding", length, config.d_model);
  } else if (added_ && store.holds_values()) {
    sinusoidal_ = Tensor({length, config.d_model});
    kernels::sinusoidal_positions(sinusoidal_.matrix());
  }
  if (config.norm_embedding) norm_.emplace(store, prefix + "embedding_norm", config);
}

void InputEmbedding::init(ParameterStore& store, std::uint64_t seed) const {
  tokens_.init(store, seed, token_std_);
  if (learned_) learned_->init(store, seed, position_std_);
  if (norm_) norm_->init(store);
}

Var InputEmbedding::positions(Var x, std::int64_t first) const {
  Tape& tape = x.tape();
  const Var table = learned_ ? tape.parameter(learned_->weight)
                             : tape.buffer({longest_, x.shape().last()}, sinusoidal_.data());
  if (first == 0) return table;
  std::vector<std::int32_t> rows(static_cast<std::size_t>(x.shape()[1]));
  std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(first));
  return select_rows(table, rows);
}

Var InputEmbedding::operator()(Tape& tape, std::span<const std::int32_t> tokens, std::int64_t length,
                               const ForwardOptions& options, std::int64_t first) const {
  require<ShapeError>(first + length <= longest_,
                      "transformer: sequences of {} tokens, the model accepts at most {}", first + length,
                      longest_);
  const bool is_source = site_ == SiteKind::source_embedding;
  Var x = hook_point(options.hooks, {is_source ? SiteKind::source_tokens : SiteKind::tokens},
                     tokens_(tape, tokens, length));
  const Site of_positions{is_source ? SiteKind::source_positions : SiteKind::positions};
  if (added_ && options.hooks != nullptr && options.hooks->wants(of_positions)) {
    const Var table = learned_ ? tape.parameter(learned_->weight) : tape.variable(sinusoidal_);
    std::vector<std::int32_t> at;
    for (std::int64_t i = 0; i < std::ssize(tokens); ++i)
      at.push_back(static_cast<std::int32_t>(first + i % length));
    x = add(x, hook_point(options.hooks, of_positions, embedding(table, at, length)));
  } else if (added_) {
    x = add_positions(x, positions(x, first));
  }
  if (norm_) x = (*norm_)(x);
  return hook_point(options.hooks, {site_}, dropout_(x, options));
}

OutputNet::OutputNet(ParameterStore& store, const ModelConfig& config, std::int64_t vocabulary,
                     Parameter token_embedding)
    : hidden_(optional_if<Linear>(config.output.hidden > 0, store, "output.0", config.d_model,
                                  config.output.hidden, config.bias)),
      norm_(optional_if<LayerNorm>(hidden_.has_value(), store, "output.1", config.output.hidden,
                                   config.norm_epsilon,
                                   NormParts{.weight = config.norm_weight, .bias = config.bias})),
      output_(optional_if<Linear>(!config.output.tied, store, hidden_ ? "output.3" : "output",
                                  hidden_ ? config.output.hidden : config.d_model, vocabulary, config.bias)),
      tied_(token_embedding) {
  if (config.output.tied && config.bias) bias_ = store.add("output.bias", {vocabulary});
}

void OutputNet::init(ParameterStore& store, std::uint64_t seed) const {
  if (hidden_) {
    hidden_->init(store, seed);
    norm_->init(store);
  }
  if (output_) output_->init(store, seed);
  if (bias_) init_constant(store, *bias_, 0);
}

Var OutputNet::operator()(Var x) const {
  Tape& tape = x.tape();
  if (!output_) return linear(x, tape.parameter(tied_), parameter_if(tape, bias_));
  return (*output_)(hidden_ ? relu((*norm_)((*hidden_)(x))) : x);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
