#include "thimble/model/recurrent.h"

#include <cmath>

#include "model/decoder_state.h"
#include "thimble/core/error.h"
#include "thimble/model/decoding.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

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

void require_length(std::int64_t length, std::int64_t longest) {
  require<ShapeError>(length <= longest, "recurrent: sequences of {} tokens, the model takes at most {}",
                      length, longest);
}

}  // namespace

Recurrent::Recurrent(const ModelConfig& config, const ModelSizes& sizes, Storage storage)
    : Model(config, sizes, storage),
      source_embedding_(store_, "source_token_embedding", vocabulary(), config.d_model),
      embedding_(store_, "token_embedding", vocabulary(), config.d_model),
      encoder_(store_, "encoder.gru", config.d_model, half(config.d_model), true),
      initial_(store_, "decoder.initial", config.d_model, config.d_model),
      decoder_(store_, "decoder.gru", score() == Score::additive ? 2 * config.d_model : config.d_model,
               config.d_model, false) {
  const std::int64_t c = config.d_model;
  if (score() == Score::additive) {
    query_.emplace(store_, "decoder.attention.query", c, c);
    key_.emplace(store_, "decoder.attention.key", c, c);
  }
  if (const auto shape = score_parameter(score(), 1, c))
    score_weight_ = store_.add("decoder.attention.score_weight", *shape);
  if (score() != Score::none) combine_.emplace(store_, "decoder.attention.combine", 2 * c, c);
  output_.emplace(store_, "output", c, vocabulary());
}

void Recurrent::init(std::uint64_t seed) {
  source_embedding_.init(store_, seed, config_.embedding_std);
  embedding_.init(store_, seed, config_.embedding_std);
  encoder_.init(store_, seed);
  decoder_.init(store_, seed);
  initial_.init(store_, seed);
  for (const auto& layer : {query_, key_, combine_, output_})
    if (layer) layer->init(store_, seed);
  if (score_weight_)
    init_uniform(store_, *score_weight_, seed, 1 / std::sqrt(static_cast<double>(config_.d_model)));
}

Recurrent::Memory Recurrent::read(Tape& tape, const ModelInput& input, const ForwardOptions& pass) const {
  require_length(input.source_length, sizes_.source_length);
  tape.set_layer("encoder");
  const Var embedded = source_embedding_(tape, input.sources, input.source_length);
  const Var x =
      hook_point(pass.hooks, {SiteKind::source_embedding}, dropout(kSourceEmbedding)(embedded, pass));
  const GruStates read = encoder_(x, input.source_lengths);
  const Var states = hook_point(pass.hooks, {SiteKind::encoder_output}, read.all);
  return {states, key_ ? (*key_)(states) : states, tape.keep(input.source_lengths),
          tanh(initial_(read.last))};
}

Recurrent::Written Recurrent::write(const Memory& memory, Var state, std::span<const std::int32_t> tokens,
                                    std::int64_t length, const ForwardOptions& pass,
                                    std::span<const std::int32_t> rows, std::int64_t first) const {
  require_length(first + length, max_length());
  Tape& tape = state.tape();
  tape.set_layer("decoder");
  const Var embedded = embedding_(tape, tokens, length);
  const Var x = hook_point(pass.hooks, {SiteKind::embedding}, dropout(kEmbedding)(embedded, pass));
  const bool additive = score() == Score::additive;
  const Steps steps = additive ? run_additive(memory, state, x, pass, first) : run(memory, state, x, pass);
  Var y = hook_point(pass.hooks, {SiteKind::decoder_output}, dropout(kOutput)(steps.outputs, pass));
  tape.set_layer("output");
  if (!rows.empty()) y = select_rows(y, rows);
  return {hook_point(pass.hooks, {SiteKind::logits}, (*output_)(y)), steps.state};
}

// All states first, and then all looks back at once.
Recurrent::Steps Recurrent::run(const Memory& memory, Var state, Var x, const ForwardOptions& pass) const {
  const GruCell& cell = decoder_.cells[0];
  const std::int64_t time = x.shape()[1];
  const std::span<Var> states = x.tape().allocate<Var>(static_cast<std::size_t>(time));
  const Var gates = cell.gates(x);
  for (std::int64_t t = 0; t < time; ++t)
    states[static_cast<std::size_t>(t)] = state = cell(step(gates, t), state);
  const Var all = stack(states);
  if (score() == Score::none) return {all, state};
  return {combine(look(memory, all, pass, 0), all), state};
}

// What is seen of the source decides on the next state.
Recurrent::Steps Recurrent::run_additive(const Memory& memory, Var state, Var x, const ForwardOptions& pass,
                                         std::int64_t first) const {
  const GruCell& cell = decoder_.cells[0];
  const std::int64_t time = x.shape()[1];
  const std::span<Var> states = x.tape().allocate<Var>(static_cast<std::size_t>(time));
  const std::span<Var> seen = x.tape().allocate<Var>(static_cast<std::size_t>(time));
  for (std::int64_t t = 0; t < time; ++t) {
    const auto i = static_cast<std::size_t>(t);
    const Var before = stack({&state, 1});
    seen[i] = step(look(memory, before, pass, first + t), 0);
    states[i] = state = cell(cell.gates(concat(step(x, t), seen[i])), state);
  }
  return {combine(stack(seen), stack(states)), state};
}

// What states (B, T, C), of which the first is that of `position`, see of the source: (B, T, C).
Var Recurrent::look(const Memory& memory, Var states, const ForwardOptions& pass,
                    std::int64_t position) const {
  Tape& tape = states.tape();
  const auto at = static_cast<std::int32_t>(position);
  AttentionOptions options;
  options.mask.lengths = memory.lengths;
  options.hooks = pass.hooks;
  options.site = {SiteKind::attention_weights, 0, at};
  if (pass.training && config_.attention.dropout > 0) {
    options.dropout = static_cast<Real>(config_.attention.dropout);
    options.key = pass.dropout_key(kAttention + static_cast<std::uint32_t>(at));
  }
  std::optional<Var> weight;
  if (score_weight_) weight = tape.parameter(*score_weight_);
  const Var query = query_ ? (*query_)(states) : states;
  const Var seen = scored_attention(score(), query, memory.keys, memory.states, weight, options);
  return hook_point(pass.hooks, {SiteKind::head_output, 0, at}, seen);
}

Var Recurrent::combine(Var seen, Var states) const { return tanh((*combine_)(concat(seen, states))); }

Var Recurrent::operator()(Tape& tape, const ModelInput& input, const ForwardOptions& pass) const {
  const Memory memory = read(tape, input, pass);
  return write(memory, memory.first, input.tokens, input.length, pass, input.rows).logits;
}

// Keeps what was read, and the state after the answers so far.
class Recurrent::RecurrentState final : public DecoderState {
 public:
  RecurrentState(const Recurrent& model, const ModelInput& sources)
      : model_(model), lengths_(sources.source_lengths.begin(), sources.source_lengths.end()) {
    tape_.bind(model.parameters(), {});
    const Memory memory = model.read(tape_, sources, {});
    states_ = copied(memory.states);
    keys_ = copied(memory.keys);
    state_ = copied(memory.first);
  }

  Tensor next(std::span<const std::int32_t> tokens) override {
    require_tokens(tokens, state_.shape()[0]);
    tape_.rewind();
    const Var state = tape_.constant(state_);
    const Memory memory{tape_.constant(states_), tape_.constant(keys_), lengths_, state};
    const Written written = model_.write(memory, state, tokens, 1, {}, {}, at_++);
    state_ = copied(written.state);
    return Tensor({std::ssize(tokens), model_.vocabulary()}, copied(written.logits).values());
  }

  void reorder(std::span<const std::int32_t> from) override {
    for (Tensor* tensor : {&states_, &keys_, &state_}) *tensor = gather_rows(*tensor, from);
    lengths_ = gather_rows(lengths_, from);
  }

 private:
  const Recurrent& model_;
  std::int64_t at_ = 0;
  std::vector<std::int32_t> lengths_;
  Tensor states_, keys_;  // of the sources
  Tensor state_;          // of the decoder
  Tape tape_{Tape::Mode::inference};
};

std::unique_ptr<DecoderState> Recurrent::decode(const ModelInput& sources) const {
  return std::make_unique<RecurrentState>(*this, sources);
}

double Recurrent::plan_decoding(Tape& tape, const ModelInput& sources) const {
  const Memory memory = read(tape, sources, {});
  double kept = 0;
  for (const Var& v : {memory.states, memory.keys, memory.first})
    kept += static_cast<double>(v.shape().elements());
  return kept;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
