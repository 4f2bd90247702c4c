#include "thimble/model/recurrent.h"

#include <cmath>

#include "thimble/core/error.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

// Each step of additive attention has a dropout site of its own, so these come last.
enum DropoutSite : std::uint32_t { kSourceEmbedding, kEmbedding, kOutput, kAttention };

std::int64_t half(std::int64_t channels) {
  require<ShapeError>(channels > 0 && channels % 2 == 0,
                      "recurrent: {} channels: there must be an even number, half for each direction of the "
                      "encoder",
                      channels);
  return channels / 2;
}

}  // namespace

Recurrent::Recurrent(const RecurrentSettings& settings)
    : settings_(settings),
      source_embedding_(store_, "source_token_embedding", settings.vocabulary, settings.channels),
      embedding_(store_, "token_embedding", settings.vocabulary, settings.channels),
      encoder_(store_, "encoder.gru", settings.channels, half(settings.channels), true),
      initial_(store_, "decoder.initial", settings.channels, settings.channels),
      decoder_(store_, "decoder.gru",
               settings.attention == Score::additive ? 2 * settings.channels : settings.channels,
               settings.channels, false) {
  const std::int64_t c = settings.channels;
  if (settings.attention == Score::additive) {
    query_.emplace(store_, "decoder.attention.query", c, c);
    key_.emplace(store_, "decoder.attention.key", c, c);
  }
  if (settings.attention) {
    if (const auto shape = score_parameter(*settings.attention, 1, c))
      score_weight_ = store_.add("decoder.attention.score_weight", *shape);
    combine_.emplace(store_, "decoder.attention.combine", 2 * c, c);
  }
  output_.emplace(store_, "output", c, settings.vocabulary);
}

void Recurrent::init(std::uint64_t seed) {
  source_embedding_.init(store_, seed, settings_.embedding_std);
  embedding_.init(store_, seed, settings_.embedding_std);
  encoder_.init(store_, seed);
  decoder_.init(store_, seed);
  initial_.init(store_, seed);
  for (const auto& layer : {query_, key_, combine_, output_})
    if (layer) layer->init(store_, seed);
  if (score_weight_)
    init_uniform(store_, *score_weight_, seed, 1 / std::sqrt(static_cast<double>(settings_.channels)));
}

Recurrent::Memory Recurrent::read(Tape& tape, std::span<const std::int32_t> sources, std::int64_t length,
                                  std::span<const std::int32_t> lengths, const Pass& pass) const {
  static const std::string kEmbeddingSite = "source_embedding", kOutputSite = "encoder.output";
  tape.set_layer("encoder");
  const Var x = Dropout{settings_.dropout, kSourceEmbedding}(source_embedding_(tape, sources, length), pass);
  const GruStates read = encoder_(site(pass.hooks, kEmbeddingSite, x), lengths);
  const Var states = site(pass.hooks, kOutputSite, read.all);
  return {states, key_ ? (*key_)(states) : states, tape.keep(lengths), tanh(initial_(read.last))};
}

Recurrent::Answer Recurrent::write(const Memory& memory, Var state, std::span<const std::int32_t> tokens,
                                   std::int64_t length, const Pass& pass, std::span<const std::int32_t> rows,
                                   std::int64_t first) const {
  static const std::string kEmbeddingSite = "embedding", kOutputSite = "decoder.output",
                           kLogitsSite = "logits";
  Tape& tape = state.tape();
  tape.set_layer("decoder");
  Var x = Dropout{settings_.dropout, kEmbedding}(embedding_(tape, tokens, length), pass);
  x = site(pass.hooks, kEmbeddingSite, x);
  const bool additive = settings_.attention == Score::additive;
  const Steps steps = additive ? run_additive(memory, state, x, pass, first) : run(memory, state, x, pass);
  Var y = site(pass.hooks, kOutputSite, Dropout{settings_.dropout, kOutput}(steps.outputs, pass));
  tape.set_layer("output");
  if (!rows.empty()) y = select_rows(y, rows);
  return {site(pass.hooks, kLogitsSite, (*output_)(y)), steps.state};
}

// All states first, and then all looks back at once.
Recurrent::Steps Recurrent::run(const Memory& memory, Var state, Var x, const Pass& pass) const {
  const GruCell& cell = decoder_.cells[0];
  const std::int64_t time = x.shape()[1];
  const std::span<Var> states = x.tape().room<Var>(static_cast<std::size_t>(time));
  const Var gates = cell.gates(x);
  for (std::int64_t t = 0; t < time; ++t)
    states[static_cast<std::size_t>(t)] = state = cell(step(gates, t), state);
  const Var all = stack(states);
  if (!settings_.attention) return {all, state};
  return {combine(look(memory, all, pass, "", kAttention), all), state};
}

// What is seen of the source decides on the next state.
Recurrent::Steps Recurrent::run_additive(const Memory& memory, Var state, Var x, const Pass& pass,
                                         std::int64_t first) const {
  const GruCell& cell = decoder_.cells[0];
  const std::int64_t time = x.shape()[1];
  const std::span<Var> states = x.tape().room<Var>(static_cast<std::size_t>(time));
  const std::span<Var> seen = x.tape().room<Var>(static_cast<std::size_t>(time));
  for (std::int64_t t = 0; t < time; ++t) {
    const auto i = static_cast<std::size_t>(t);
    const std::string name = pass.hooks != nullptr ? fmt::format(".{}", first + t) : "";
    const Var before = stack({&state, 1});
    seen[i] = step(look(memory, before, pass, name, kAttention + static_cast<std::uint32_t>(first + t)), 0);
    states[i] = state = cell(cell.gates(concat(step(x, t), seen[i])), state);
  }
  return {combine(stack(seen), stack(states)), state};
}

// What states (B, T, C) see of the source: (B, T, C).
Var Recurrent::look(const Memory& memory, Var states, const Pass& pass, const std::string& step,
                    std::uint32_t dropout_site) const {
  Tape& tape = states.tape();
  std::string weights_site, output_site;
  if (pass.hooks != nullptr) {
    weights_site = "decoder.attention.weights" + step;
    output_site = "decoder.attention.head_output" + step;
  }
  AttentionOptions options;
  options.mask.lengths = memory.lengths;
  options.hooks = pass.hooks;
  options.site = &weights_site;
  if (pass.training && settings_.attention_dropout > 0) {
    options.dropout = settings_.attention_dropout;
    options.key = pass.dropout_key(dropout_site);
  }
  std::optional<Var> weight;
  if (score_weight_) weight = tape.parameter(*score_weight_);
  const Var query = query_ ? (*query_)(states) : states;
  const Var seen = scored_attention(*settings_.attention, query, memory.keys, memory.states, weight, options);
  return site(pass.hooks, output_site, seen);
}

Var Recurrent::combine(Var seen, Var states) const { return tanh((*combine_)(concat(seen, states))); }

}  // namespace thimble::inline THIMBLE_PRECISION
