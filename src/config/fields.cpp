#include "config/fields.h"

#include <algorithm>

namespace thimble::config {
namespace {

template <class Enum>
Choice one_of(Enum& value, const std::vector<std::string_view>& names) {
  return {.value = &value,
          .set = [](void* to, const Choice&,
                    std::size_t index) { *static_cast<Enum*>(to) = static_cast<Enum>(index); },
          .get =
              [](const void* from, const Choice& choice) {
                return choice.names[static_cast<std::size_t>(*static_cast<const Enum*>(from))];
              },
          .names = names};
}

std::vector<std::string_view> score_names() {
  std::vector<std::string_view> names;
  for (const ScoreKind& kind : kScoreKinds) names.push_back(kind.name);
  return names;
}

Choice one_of(std::string& value, std::span<const std::string_view> names) {
  return {.value = &value,
          .set = [](void* to, const Choice& choice,
                    std::size_t index) { *static_cast<std::string*>(to) = choice.names[index]; },
          .get = [](const void* from, const Choice&) -> std::string_view {
            return *static_cast<const std::string*>(from);
          },
          .names = {names.begin(), names.end()}};
}

// A probability, or a factor below one.
Real fraction(double& value) { return {&value, 0, 1, false, true}; }

Field may_change(Field field) {
  field.may_change = true;
  return field;
}

// Limits keep every product of sizes, such as B·H·T·T, far below 2^63.

Section fields(TaskConfig& c) {
  Section section = {{{"name", "what to learn", one_of(c.name, task_names())},
                      {"symbols", "distinct tokens that inputs are made of", Integer{&c.symbols, 2, 65536}},
                      {"length", "tokens in the longest input", Integer{&c.length, 1, 8192}},
                      {"min_length", "tokens in the shortest input; 0: every input is `length` long",
                       Integer{&c.min_length, 0, 8192}},
                      {"offset", "positions to shift by", Integer{&c.offset, 1, 8192}},
                      {"pairs", "key-value pairs of an input", Integer{&c.pairs, 1, 4096}},
                      {"depth", "deepest nesting of brackets", Integer{&c.depth, 1, 8192}},
                      // The run's record holds what is in the files; where they are may change.
                      may_change({"file", "a JSON Lines or tab-separated file of input and target sequences",
                                  Path{&c.file}}),
                      may_change({"validation_file", "the same for validation", Path{&c.validation_file}}),
                      may_change({"test_file", "the same for the test", Path{&c.test_file}}),
                      may_change({"vocabulary_file", "the tokens there are", Path{&c.vocabulary_file}})}};
  const auto& used = find_task(c.name).keys;
  for (Field& field : section.fields)
    field.applies = field.key == "name" || std::ranges::find(used, field.key) != used.end();
  return section;
}

Section fields(DataConfig& c) {
  return {{{"train", "training sequences; 0 draws fresh ones for ever", Integer{&c.train, 0, 1'000'000'000}},
           {"validation", "validation sequences", Integer{&c.validation, 1, 1'000'000'000}},
           {"test", "test sequences", Integer{&c.test, 1, 1'000'000'000}}}};
}

Section fields(AttentionConfig& c) {
  return {{{"mask", "which positions a position may look at: all, or none after itself",
            one_of(c.mask, {"none", "causal"})},
           {"dropout", "of the attention weights", fraction(c.dropout)},
           {"score",
            "what a query makes of a key: q k over the root of d_key, q k, q W k, or w tanh(q + k); "
            "none: a recurrent model without attention",
            one_of(c.score, score_names())},
           {"combine", "heads side by side before one projection, or added up after one each",
            one_of(c.combine, {"concat", "sum"})},
           {"tie_query_key", "one projection for queries and keys", Boolean{&c.tie_query_key}},
           {"kv_heads", "heads of keys and values, which as many heads share; must divide heads; 0: heads",
            Integer{&c.kv_heads, 0, 8192}},
           {"d_key", "width of a head's queries and keys; 0: d_model / heads", Integer{&c.d_key, 0, 8192}},
           {"d_value", "width of a head's values; 0: d_model / heads", Integer{&c.d_value, 0, 8192}}}};
}

Section fields(OutputConfig& c) {
  return {
      {{"per",
        "what an answer is given for; next: the tokens that follow the input, one after another, which is "
        "all that other kinds than encoder do",
        one_of(c.per, {"position", "sequence", "next"})},
       {"hidden", "width of the output net's hidden layer; 0: one linear layer",
        Integer{&c.hidden, 0, 65536}},
       {"pooling", "what an output per sequence reads", one_of(c.pooling, {"mean", "first", "last"})}}};
}

Section fields(ModelConfig& c) {
  return {
      {{"kind",
        "encoder: answers about the sequence it reads; encoder_decoder: writes another one; recurrent: so do "
        "its GRUs",
        one_of(c.kind, {"encoder", "encoder_decoder", "recurrent"})},
       {"d_model", "width of the residual stream, of a recurrent model's embeddings and states",
        Integer{&c.d_model, 1, 8192}},
       {"heads", "attention heads of a layer; must divide d_model, unless d_key and d_value are given",
        Integer{&c.heads, 1, 8192}},
       {"layers", "encoder layers", Integer{&c.layers, 1, 128}},
       {"d_ff", "hidden width of the feed-forward net; 0: none, attention alone", Integer{&c.d_ff, 0, 65536}},
       {"max_length", "longest sequence the model takes; 0: what the task needs",
        Integer{&c.max_length, 0, 16384}},
       {"norm", "layer norm before or after each sub-layer", one_of(c.norm, {"pre", "post"})},
       {"norm_type", "layer norm, or RMS norm, which only rescales", one_of(c.norm_type, {"layer", "rms"})},
       {"activation", "of the feed-forward net",
        one_of(c.activation, {"relu", "gelu", "gelu_tanh", "tanh", "silu"})},
       {"gated", "the feed-forward net's hidden layer is multiplied by a linear one", Boolean{&c.gated}},
       {"positions", "how tokens know their place: added to embeddings, not at all, or in attention alone",
        one_of(c.positions, {"sinusoidal", "learned", "none", "rotary", "alibi"})},
       {"embedding_std", "standard deviation of token embeddings at the start",
        Real{&c.embedding_std, 0, 100}},
       {"position_std", "standard deviation of learned positions at the start",
        Real{&c.position_std, 0, 100}},
       {"mixer", "what takes tokens from one position to another",
        one_of(c.mixer, {"attention", "convolution"})},
       {"window", "positions that a convolution sees: around each one, or with a causal mask up to it",
        Integer{&c.window, 1, 8192}},
       {"attention", "how positions read from each other", fields(c.attention)},
       {"dropout", "of the embedding and of every sub-layer's output", fraction(c.dropout)},
       {"output", "how answers are read off", fields(c.output)}}};
}

Section fields(OptimizerConfig& c) {
  return {{{"name", "update rule", one_of(c.name, {"adam", "adamw", "sgd"})},
           {"lr", "learning rate", Real{&c.lr, 0, 100, true}},
           {"beta1", "decay of the mean gradient (adam, adamw)", fraction(c.beta1)},
           {"beta2", "decay of the mean squared gradient (adam, adamw)", fraction(c.beta2)},
           {"epsilon", "added to the root of the mean squared gradient (adam, adamw)",
            Real{&c.epsilon, 0, 1, true}},
           {"momentum", "of sgd", fraction(c.momentum)},
           {"weight_decay", "of matrices: decoupled in adamw, added to the gradient in adam and sgd",
            Real{&c.weight_decay, 0, 100}}}};
}

Section fields(ScheduleConfig& c) {
  return {{{"name", "factor of the learning rate over the steps",
            one_of(c.name, {"constant", "linear", "cosine", "inverse_sqrt"})},
           {"warmup", "steps over which the learning rate first rises from 0",
            Integer{&c.warmup, 0, 1'000'000'000}}}};
}

Section fields(TargetConfig& c) {
  return {{may_change({"accuracy", "stop when this share of validation tokens is right; 0: no target",
                       Real{&c.accuracy, 0, 1}}),
           may_change({"loss", "stop when the validation loss is at most this; 0: no target",
                       Real{&c.loss, 0, 1e6}})}};
}

Section fields(TrainConfig& c) {
  return {
      {may_change({"steps", "optimizer steps", Integer{&c.steps, 1, 1'000'000'000}}),
       {"batch", "sequences per step", Integer{&c.batch, 1, 65536}},
       {"seed", "of everything random", Seed{&c.seed}},
       {"shards", "parts of a batch whose gradients are summed in a fixed tree", Integer{&c.shards, 1, 1024}},
       may_change({"threads", "0: every core; never changes a result", Integer{&c.threads, 0, 1024}}),
       {"precision", "of all arithmetic", one_of(c.precision, {"float32", "float64"})},
       {"optimizer", "how gradients become updates", fields(c.optimizer)},
       {"schedule", "how the learning rate changes", fields(c.schedule)},
       {"clip_norm", "largest global gradient norm; 0: no clipping", Real{&c.clip_norm, 0, 1e6}},
       {"label_smoothing", "probability spread over all labels", fraction(c.label_smoothing)},
       may_change({"evaluate_every", "steps between evaluations; 0: only after the last",
                   Integer{&c.evaluate_every, 0, 1'000'000'000}}),
       {"target", "what is good enough; looked at whenever evaluate_every evaluates", fields(c.target)},
       may_change({"patience", "stop after this many evaluations without a better validation loss; 0: never",
                   Integer{&c.patience, 0, 1'000'000'000}}),
       may_change({"checkpoint_every", "steps between checkpoints; 0: only at the end and when interrupted",
                   Integer{&c.checkpoint_every, 0, 1'000'000'000}}),
       may_change({"checkpoint_series", "keep checkpoints at steps 1, 2, 5, 10, 20, 50, ..., too",
                   Boolean{&c.checkpoint_series}}),
       {"log_heads", "write what the heads look at into metrics.jsonl, at steps evenly spaced by logarithm",
        Boolean{&c.log_heads}}}};
}

}  // namespace

Section describe(Config& c) {
  return {{{"base", "another config file whose values hold where this one says nothing; relative to this one",
            Base{}},
           {"task", "where sequences come from", fields(c.task)},
           {"data", "how many sequences each split has", fields(c.data)},
           {"model", "what is trained", fields(c.model)},
           {"train", "how it is trained", fields(c.train)}}};
}

const Field* Section::find(std::string_view key) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.key == key; });
  return found == fields.end() ? nullptr : &*found;
}

std::vector<std::string_view> keys(const Section& section) {
  std::vector<std::string_view> out;
  for (const Field& field : section.fields) out.push_back(field.key);
  return out;
}

std::vector<Named> flatten(const Section& section, const std::string& prefix) {
  std::vector<Named> out;
  for (const Field& field : section.fields) {
    const std::string path = prefix + std::string(field.key);
    out.push_back({path, &field});
    if (const Section* inner = field.section()) {
      const auto below = flatten(*inner, path + ".");
      out.insert(out.end(), below.begin(), below.end());
    }
  }
  return out;
}

}  // namespace thimble::config
