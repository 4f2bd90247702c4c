#include "train/config/fields.h"

#include <algorithm>

namespace thimble::config {
namespace {

// `value`: an enumerator, or what is made of a text and converts to it.
template <class T>
Choice one_of(T& value, const std::vector<std::string_view>& names, bool is_list = false) {
  return {.value = &value,
          .set =
              [](void* to, const Choice& choice, std::string_view text) {
                if constexpr (std::is_enum_v<T>)
                  *static_cast<T*>(to) =
                      static_cast<T>(std::ranges::find(choice.names, text) - choice.names.begin());
                else
                  *static_cast<T*>(to) = T(text);
              },
          .get =
              [](const void* from, const Choice& choice) {
                const T& current = *static_cast<const T*>(from);
                if constexpr (std::is_enum_v<T>)
                  return std::string(choice.names[static_cast<std::size_t>(current)]);
                else
                  return std::string(current);
              },
          .names = names,
          .is_list = is_list};
}

std::vector<std::string_view> score_names() {
  std::vector<std::string_view> names;
  for (const ScoreKind& kind : kScoreKinds) names.push_back(kind.name);
  return names;
}

// Returns the rule for a probability or a factor below one.
Real fraction(double& value) { return {&value, 0, 1, false, true}; }

Field may_change(Field field) {
  field.may_change = true;
  return field;
}

// The limits below keep every product of sizes, such as B·H·T·T, far below 2^63.

Section fields(TaskConfig& c) {
  const std::vector<std::string_view> ways{"spaces", "characters", "words", "field"};
  Section section = {
      {{"name", "task to train on; thimble tasks lists them",
        one_of(c.name, {task_names().begin(), task_names().end()})},
       {"symbols", "number of distinct symbols in inputs", Integer{&c.symbols, 2, 65536}},
       {"length", "tokens in the longest input", Integer{&c.length, 1, 8192}},
       {"min_length", "tokens in the shortest input; 0: every input has `length` tokens",
        Integer{&c.min_length, 0, 8192}},
       {"offset", "positions to shift by", Integer{&c.offset, 1, 8192}},
       {"pairs", "key-value pairs in an input", Integer{&c.pairs, 1, 4096}},
       {"depth", "maximum nesting depth of brackets", Integer{&c.depth, 1, 8192}},
       // A run's data.json records the content of the files, so they may move.
       may_change({"file", "data file, JSON Lines or tab-separated: an input and a target on each line",
                   Path{&c.file}}),
       may_change({"validation_file", "data file of the validation split; default: a tenth of file",
                   Path{&c.validation_file}}),
       may_change({"test_file", "data file of the test split; default: a tenth of file", Path{&c.test_file}}),
       may_change({"vocabulary_file", "file with a token on each line; default: the tokens in the data",
                   Path{&c.vocabulary_file}}),
       {"format", "format of data files; auto: by the extension of the name",
        one_of(c.options.format, {"auto", "tsv", "csv", "jsonl", "conllu", "conll"})},
       {"input",
        "columns of the input, joined by commas: numbers from 0, names in the header, fields of CoNLL-U or keys of JSON",
        Text{&c.options.input}},
       {"target", "columns of the target, as for input", Text{&c.options.target}},
       {"header", "skip the first line of a table", Boolean{&c.options.header}},
       {"separator",
        "text at whose first occurrence a line is cut into input and target (default: a tab), or with which the first line of a record begins",
        Text{&c.options.separator}},
       {"input_tokens",
        "tokens of an input: what is between spaces, every character, words and marks, or the whole field; or one of these for each column, joined by commas",
        one_of(c.options.input_tokens, ways, true)},
       {"target_tokens", "tokens of a target: one of those", one_of(c.options.target_tokens, ways)},
       {"no_answer", "token of a target that marks a position without an answer; \"\": there is none",
        Text{&c.options.no_answer, true}},
       {"documents",
        "what a text consists of: a document a line, one stream, or documents of several lines: paragraphs, which blank lines separate, or records, whose first line begins with `separator`",
        one_of(c.text.documents, {"lines", "stream", "paragraphs", "records"})},
       {"tokens", "tokens of a text: what is between spaces, every character, words and marks, or every byte",
        one_of(c.text.tokens, {"spaces", "characters", "words", "bytes"})},
       {"long", "documents of more than `length` tokens: several windows, or only the first",
        one_of(c.text.longer, {"windows", "cut"})},
       {"stride",
        "tokens from a window of validation and test to the next one, whose first tokens are context alone; 0: `length`",
        Integer{&c.text.stride, 0, 1'000'000}},
       {"split",
        "shares of a stream for training, validation and test, or for training and both of the others; default: 0.8,0.1,0.1",
        Text{&c.text.split}},
       {"vocabulary",
        "tokens with an id of their own: those of all rows, or of training rows; others are <unk>",
        one_of(c.options.vocabulary, {"all", "training"})},
       {"min_count", "tokens that occur less often are <unk>; 0: 1, or 2 with vocabulary training",
        Integer{&c.options.min_count, 0, 1'000'000'000}},
       {"max_tokens", "leave out lines whose input or target has more tokens; 0: keep all",
        Integer{&c.options.max_tokens, 0, 8192}},
       {.key = "skip_empty",
        .help = "leave out lines in which a field of the input or the target is empty",
        .kind = Boolean{&c.options.skip_empty},
        .newer = "false"}}};
  const auto& used = find_task(c.name).keys;
  for (Field& field : section.fields)
    field.applies = field.key == "name" || std::ranges::find(used, field.key) != used.end();
  return section;
}

Section fields(DataConfig& c) {
  const auto count = [](std::int64_t& value, std::int64_t low) {
    return Integer{&value, low, 1'000'000'000, "all"};
  };
  return {
      {{"train",
        "training sequences; 0: unlimited, generated as training goes on; of a file, all (its default) or a random sample of that many lines",
        count(c.train, 0)},
       {"validation", "validation sequences; of a file, all (its default) or a random sample",
        count(c.validation, 1)},
       {"test", "test sequences; of a file, all (its default) or a random sample", count(c.test, 1)}}};
}

Section fields(AttentionConfig& c) {
  return {
      {{"mask", "none: every position attends to all positions; causal: to itself and earlier ones",
        one_of(c.mask, {"none", "causal"})},
       {"dropout", "dropout probability of attention weights", fraction(c.dropout)},
       {"score",
        "attention score of query q and key k: q k / sqrt(d_key), q k, q W k, w tanh(q + k), sqrt(d_key) cos(q, k), or q k without a softmax; none: a recurrent model without attention",
        one_of(c.score, score_names())},
       {"combine", "concat: concatenate the heads, then project; sum: project each head, then add",
        one_of(c.combine, {"concat", "sum"})},
       {"in_proj", "project the input to queries, keys and values; false: they are the input, cut into heads",
        Boolean{&c.in_proj}},
       {"in_proj_std", "standard deviation of initial in_proj weights; 0: Glorot uniform, as in PyTorch",
        Real{&c.in_proj_std, 0, 100}},
       {"tie_query_key", "use one projection for both queries and keys", Boolean{&c.tie_query_key}},
       {"kv_heads", "key-value heads (grouped-query attention); must divide heads; 0: as many as heads",
        Integer{&c.kv_heads, 0, 8192}},
       {"d_key", "size of a head's queries and keys; 0: d_model / heads", Integer{&c.d_key, 0, 8192}},
       {"d_value", "size of a head's values; 0: d_model / heads", Integer{&c.d_value, 0, 8192}}}};
}

Section fields(OutputConfig& c) {
  return {
      {{"per",
        "what the model predicts a label for: each position, the whole sequence, or the next token, the only choice for encoder_decoder and recurrent",
        one_of(c.per, {"position", "sequence", "next"})},
       {"hidden", "hidden size of the output network; 0: one linear layer", Integer{&c.hidden, 0, 65536}},
       {"tied", "the weight of the output is that of the token embedding", Boolean{&c.tied}},
       {"pooling", "how an output per sequence pools positions",
        one_of(c.pooling, {"mean", "first", "last"})}}};
}

Section fields(ModelConfig& c) {
  return {
      {{"kind",
        "encoder: labels its input; encoder_decoder: generates another sequence; recurrent: generates it with GRUs",
        one_of(c.kind, {"encoder", "encoder_decoder", "recurrent"})},
       {"d_model", "size of the residual stream, or of a recurrent model's embeddings and states",
        Integer{&c.d_model, 1, 8192}},
       {"heads", "attention heads per layer; must divide d_model, unless d_key and d_value are set",
        Integer{&c.heads, 1, 8192}},
       {"layers", "layers of the encoder, and of the decoder if there is one", Integer{&c.layers, 1, 128}},
       {"d_ff", "hidden size of the feed-forward network; 0: attention only", Integer{&c.d_ff, 0, 65536}},
       {"max_length", "longest sequence the model accepts; 0: what the task needs",
        Integer{&c.max_length, 0, 16384}},
       {"norm", "normalize before (pre) or after (post) each sub-layer", one_of(c.norm, {"pre", "post"})},
       {"norm_type", "layer: layer normalization; rms: RMS normalization",
        one_of(c.norm_type, {"layer", "rms"})},
       // At least 1e-30, of which the square root is a normal number of single precision.
       {"norm_epsilon",
        "added to the variance, or the mean square, in every norm; PyTorch: 1e-5, BERT: 1e-12",
        Real{&c.norm_epsilon, 1e-30, 1}},
       {"norm_weight", "norms have a weight, and layer norms a bias", Boolean{&c.norm_weight}},
       {"norm_embedding", "another norm after the embedding", Boolean{&c.norm_embedding}},
       {"norm_final", "of a pre-norm model: another norm before the output", Boolean{&c.norm_final}},
       {"bias", "linear layers, convolutions and layer norms have a bias", Boolean{&c.bias}},
       {"activation", "activation function of the feed-forward network",
        one_of(c.activation, {"relu", "gelu", "gelu_tanh", "tanh", "silu"})},
       {"gated", "gated feed-forward network: multiply its hidden layer by a second, linear one",
        Boolean{&c.gated}},
       {"positions",
        "positional encoding: added to embeddings (sinusoidal, learned), in attention (rotary, alibi), or none",
        one_of(c.positions, {"sinusoidal", "learned", "none", "rotary", "alibi"})},
       {"rotary",
        "columns of a head that rotary positions rotate together: pairs (2i, 2i+1), or halves (i, i + d_key/2) as in GPT-NeoX and LLaMA",
        one_of(c.attention.rotary.layout, {"pairs", "halves"})},
       {"rotary_base", "rotary positions rotate pair i at position p by the angle p rotary_base^(-2i/d_key)",
        Real{&c.attention.rotary.base, 1, 1e12}},
       {"embedding_std", "standard deviation of initial token embeddings", Real{&c.embedding_std, 0, 100}},
       {"position_std", "standard deviation of initial learned position embeddings",
        Real{&c.position_std, 0, 100}},
       {"init_std",
        "standard deviation of all initial matrices, embeddings included, with biases 0; 0: as embedding_std, position_std and PyTorch have it",
        Real{&c.init_std, 0, 100}},
       {"init_scaled",
        "divide init_std of the projections into the residual stream by sqrt(2 layers), as GPT-2",
        Boolean{&c.init_scaled}},
       {"mixer", "what moves information between positions", one_of(c.mixer, {"attention", "convolution"})},
       {"window",
        "positions in a convolution's window: centered, or with a causal mask ending at the position",
        Integer{&c.window, 1, 8192}},
       {"attention", "attention between positions", fields(c.attention)},
       {"dropout", "dropout probability of embeddings and sub-layer outputs", fraction(c.dropout)},
       {"output", "output layer", fields(c.output)}}};
}

Section fields(OptimizerConfig& c) {
  return {
      {{"name", "update rule", one_of(c.name, {"adam", "adamw", "sgd"})},
       {"lr", "learning rate", Real{&c.lr, 0, 100, true}},
       {"beta1", "decay rate of the mean gradient (adam, adamw)", fraction(c.beta1)},
       {"beta2", "decay rate of the mean squared gradient (adam, adamw)", fraction(c.beta2)},
       {"epsilon", "added to the root of the mean squared gradient (adam, adamw)",
        Real{&c.epsilon, 0, 1, true}},
       {"momentum", "momentum of sgd", fraction(c.momentum)},
       {"weight_decay", "weight decay of matrices: decoupled in adamw, added to the gradient in adam and sgd",
        Real{&c.weight_decay, 0, 100}}}};
}

Section fields(ScheduleConfig& c) {
  return {{{"name", "shape of the learning-rate schedule",
            one_of(c.name, {"constant", "linear", "cosine", "inverse_sqrt", "cosine_decay"})},
           {"warmup", "warm-up steps, in which the learning rate rises linearly from 0",
            Integer{&c.warmup, 0, 1'000'000'000}},
           {"final", "learning rate at which linear and cosine_decay end", Real{&c.final, 0, 100}}}};
}

Section fields(TargetConfig& c) {
  return {
      {may_change({"accuracy", "stop when validation accuracy, from 0 to 1, reaches this; 0: no target",
                   Real{&c.accuracy, 0, 1}}),
       may_change({"loss", "stop when validation loss falls to this; 0: no target", Real{&c.loss, 0, 1e6}})}};
}

Section fields(TrainConfig& c) {
  return {
      {may_change({"steps", "optimizer steps", Integer{&c.steps, 1, 1'000'000'000}}),
       {"batch", "sequences per step", Integer{&c.batch, 1, 65536}},
       {"seed", "seed of all random numbers", Seed{&c.seed}},
       {"shards", "parts of a batch whose gradients are summed in a fixed tree", Integer{&c.shards, 1, 1024}},
       may_change(
           {"threads", "CPU threads; 0: all cores; never changes the result", Integer{&c.threads, 0, 1024}}),
       {"precision", "floating-point type of all arithmetic", one_of(c.precision, {"float32", "float64"})},
       {"optimizer", "optimizer and its hyperparameters", fields(c.optimizer)},
       {"schedule", "learning-rate schedule", fields(c.schedule)},
       {"clip_norm", "maximum global gradient norm; 0: no clipping", Real{&c.clip_norm, 0, 1e6}},
       {"label_smoothing", "probability spread over all labels", fraction(c.label_smoothing)},
       may_change(
           {"evaluate_every",
            "steps between evaluations; auto: up to twenty evaluations, in about a tenth of the time at most; 0: only after the last",
            Integer{&c.evaluate_every, 0, 1'000'000'000, "auto"}}),
       may_change({"sample_every",
                   "steps between samples that a model of task text draws while it trains; 0: none",
                   Integer{&c.sample_every, 0, 1'000'000'000}}),
       {"target", "early stopping at a validation result, checked at every evaluation", fields(c.target)},
       may_change({"patience",
                   "early stopping after this many evaluations without a lower validation loss; 0: never",
                   Integer{&c.patience, 0, 1'000'000'000}}),
       may_change({"checkpoint_every", "steps between checkpoints; 0: only at the end and when interrupted",
                   Integer{&c.checkpoint_every, 0, 1'000'000'000}}),
       may_change({"checkpoint_series", "also keep checkpoints at steps 1, 2, 5, 10, 20, 50, ...",
                   Boolean{&c.checkpoint_series}}),
       {"log_heads", "log attention-head scores to metrics.jsonl, at logarithmically spaced steps",
        Boolean{&c.log_heads}}}};
}

}  // namespace

Section describe(Config& c) {
  return {{{"base",
            "config file with values for the keys that this file does not set; path relative to this file",
            Base{}},
           {"task", "task that sequences come from", fields(c.task)},
           {"data", "sequences in each split", fields(c.data)},
           {"model", "model architecture", fields(c.model)},
           {"train", "training", fields(c.train)}}};
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
