#include "engine/model/recurrent.h"

#include <cmath>

#include "engine/model/decoder_state.h"
#include "thimble/engine/decoding.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// The dropout sites. Each step of additive attention has one of its own, from kAttention on.
enum DropoutSite : std::uint32_t { kSourceEmbedding, kEmbedding, kOutput, kAttention };

// Returns the channels of each direction of the encoder.
std::int64_t half(std::int64_t d_model) {
  require<ShapeError>(d_model > 0 && d_model % 2 == 0, "recurrent: d_model ({}) must be positive and even",
                      d_model);
  return d_model / 2;
}

void require_length(std::int64_t length, std::int64_t longest) {
  require<ShapeError>(length <= longest, "recurrent: sequences of {} tokens, the model accepts at most {}",
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

Recurrent::Memory Recurrent::encode(Tape& tape, const ModelInput& input,
                                    const ForwardOptions& options) const {
  require_length(input.source_length, sizes_.source_length);
  tape.set_layer("encoder");
  const Var embedded = source_embedding_(tape, input.sources, input.source_length);
  const Var x =
      hook_point(options.hooks, {SiteKind::source_embedding}, dropout(kSourceEmbedding)(embedded, options));
  const GruStates gru = encoder_(x, input.source_lengths);
  const Var states = hook_point(options.hooks, {SiteKind::encoder_output}, gru.all);
  return {states, key_ ? (*key_)(states) : states, tape.keep(input.source_lengths), tanh(initial_(gru.last))};
}

Recurrent::DecoderOutput Recurrent::decode(const Memory& memory, Var state,
                                           std::span<const std::int32_t> tokens, std::int64_t length,
                                           const ForwardOptions& options, std::span<const std::int32_t> rows,
                                           std::int64_t first) const {
  require_length(first + length, max_length());
  Tape& tape = state.tape();
  tape.set_layer("decoder");
  const Var embedded = embedding_(tape, tokens, length);
  const Var x = hook_point(options.hooks, {SiteKind::embedding}, dropout(kEmbedding)(embedded, options));
  const bool additive = score() == Score::additive;
  const Steps steps =
      additive ? run_additive(memory, state, x, options, first) : run(memory, state, x, options);
  Var y = hook_point(options.hooks, {SiteKind::decoder_output}, dropout(kOutput)(steps.outputs, options));
  tape.set_layer("output");
  if (!rows.empty()) y = select_rows(y, rows);
  return {hook_point(options.hooks, {SiteKind::logits}, (*output_)(y)), steps.state};
}

// Computes all states, then attends from all of them at once.
Recurrent::Steps Recurrent::run(const Memory& memory, Var state, Var x, const ForwardOptions& options) const {
  const GruCell& cell = decoder_.cells[0];
  const std::int64_t time = x.shape()[1];
  const std::span<Var> states = x.tape().allocate<Var>(static_cast<std::size_t>(time));
  const Var gates = cell.gates(x);
  for (std::int64_t t = 0; t < time; ++t)
    states[static_cast<std::size_t>(t)] = state = cell(step(gates, t), state);
  const Var all = stack(states);
  if (score() == Score::none) return {all, state};
  return {combine(attend(memory, all, options, 0), all), state};
}

// Attends from each state in turn, since the context is an input of the next step.
Recurrent::Steps Recurrent::run_additive(const Memory& memory, Var state, Var x,
                                         const ForwardOptions& options, std::int64_t first) const {
  const GruCell& cell = decoder_.cells[0];
  const std::int64_t time = x.shape()[1];
  const std::span<Var> states = x.tape().allocate<Var>(static_cast<std::size_t>(time));
  const std::span<Var> context = x.tape().allocate<Var>(static_cast<std::size_t>(time));
  for (std::int64_t t = 0; t < time; ++t) {
    const auto i = static_cast<std::size_t>(t);
    const Var before = stack({&state, 1});
    context[i] = step(attend(memory, before, options, first + t), 0);
    states[i] = state = cell(cell.gates(concat(step(x, t), context[i])), state);
  }
  return {combine(stack(context), stack(states)), state};
}

// Returns the context (B, T, C) of states (B, T, C), of which the first is at `position`.
Var Recurrent::attend(const Memory& memory, Var states, const ForwardOptions& options,
                      std::int64_t position) const {
  Tape& tape = states.tape();
  const auto at = static_cast<std::int32_t>(position);
  AttentionOptions attention;
  attention.mask.lengths = memory.lengths;
  attention.hooks = options.hooks;
  attention.site = {SiteKind::attention_weights, 0, at};
  if (options.training && config_.attention.dropout > 0) {
    attention.dropout = static_cast<Real>(config_.attention.dropout);
    attention.key = options.dropout_key(kAttention + static_cast<std::uint32_t>(at));
  }
  std::optional<Var> weight;
  if (score_weight_) weight = tape.parameter(*score_weight_);
  const Var query = query_ ? (*query_)(states) : states;
  const Var context = scored_attention(score(), query, memory.keys, memory.states, weight, attention);
  return hook_point(options.hooks, {SiteKind::head_output, 0, at}, context);
}

Var Recurrent::combine(Var context, Var states) const { return tanh((*combine_)(concat(context, states))); }

Var Recurrent::operator()(Tape& tape, const ModelInput& input, const ForwardOptions& options) const {
  const Memory memory = encode(tape, input, options);
  return decode(memory, memory.initial_state, input.tokens, input.length, options, input.rows).logits;
}

// A decoder state that stores the encoded sources and the state after each hypothesis.
class Recurrent::RecurrentState final : public DecoderState {
 public:
  RecurrentState(const Recurrent& model, const ModelInput& sources)
      : model_(model), lengths_(sources.source_lengths.begin(), sources.source_lengths.end()) {
    tape_.bind(model.parameters(), {});
    const Memory memory = model.encode(tape_, sources, {});
    states_ = detach(memory.states);
    keys_ = detach(memory.keys);
    state_ = detach(memory.initial_state);
  }

  Tensor next(std::span<const std::int32_t> tokens) override {
    require_tokens(tokens, state_.shape()[0]);
    tape_.rewind();
    const Var state = tape_.constant(state_);
    const Memory memory{tape_.constant(states_), tape_.constant(keys_), lengths_, state};
    const DecoderOutput output = model_.decode(memory, state, tokens, 1, {}, {}, at_++);
    state_ = detach(output.state);
    return Tensor({std::ssize(tokens), model_.vocabulary()}, detach(output.logits).values());
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

std::unique_ptr<DecoderState> Recurrent::start_decoding(const ModelInput& sources) const {
  return std::make_unique<RecurrentState>(*this, sources);
}

double Recurrent::plan_decoding(Tape& tape, const ModelInput& sources) const {
  const Memory memory = encode(tape, sources, {});
  double kept = 0;
  for (const Var& v : {memory.states, memory.keys, memory.initial_state})
    kept += static_cast<double>(v.shape().elements());
  return kept;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
