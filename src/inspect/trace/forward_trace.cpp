// Compiled once: parses the input, calls the code of the model's precision, and writes JSON.
#include "thimble/inspect/forward_trace.h"

#include <limits>

#include "inspect/scores/require_heads.h"
#include "inspect/trace/trace_observer.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/lens_names.h"
#include "thimble/inspect/position_means.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "train/config/with_precision.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

// Returns the length of the longest input of the user.
std::int64_t max_input_length(const OpenConfig& config) {
  if (config.model.max_length > 0) return config.model.max_length;
  const ModelSizes sizes = model_sizes(config);
  const bool pairs = layout_of(config.model) == Layout::seq2seq;
  return std::max(pairs ? sizes.source_length : sizes.length,
                  pairs ? config.model.trained_source_length : config.model.trained_length);
}

// Returns the line with spaces between its characters if these are tokens, else "".
std::string spaced(const Names& names, std::string_view line) {
  std::string out;
  bool are_tokens = true;
  tokenize(line, Tokenization::characters, [&](std::string_view character) {
    if (character == " ") return;
    are_tokens &= std::ranges::find(names, character) != names.end();
    (out += out.empty() ? "" : " ") += character;
  });
  return are_tokens ? out : "";
}

// Returns the id of a token that was typed in a line: ␣ is a space where the vocabulary has no ␣.
std::int32_t token_of(const OpenConfig& config, const Names& names, std::string_view token,
                      std::string_view line) {
  auto found = std::ranges::find(names, shown_token(token));
  if (found == names.end()) found = std::ranges::find(names, token);
  if (found != names.end()) return static_cast<std::int32_t>(found - names.begin());
  const Source* source = config.source.get();
  if (source != nullptr && source->unknown() != kIgnore) return source->unknown();
  const std::string apart = config.task.input_tokens() == Tokenization::spaces ? spaced(names, line) : "";
  require<DataError>(apart.empty(), "input: there is no token {}; separate tokens by spaces: {}",
                     printable(token), shell_command({apart}));
  throw DataError(fmt::format(
      "input: there is no token {}{}; the vocabulary has {}{}", printable(token), did_you_mean(token, names),
      vocabulary_text(names, 160),
      source == nullptr
          ? ""
          : "; a model that is trained with task.min_count or task.vocabulary=training has <unk> for such tokens"));
}

// Returns the tokens of a text that was typed, cut as the file of the task is.
std::vector<std::int32_t> parse_tokens(const OpenConfig& config, const Names& names, std::string_view text) {
  const Tokenization how = config.task.input_tokens();
  const bool is_text = find_task(config.task.name).predicts_next;
  const std::int32_t boundary = config.source != nullptr ? config.source->boundary() : kIgnore;
  const std::string_view start =
      boundary == kIgnore ? ""
                          : std::string_view(config.source->tokens()[static_cast<std::size_t>(boundary)]);
  if (text.starts_with(start)) text.remove_prefix(start.size());
  std::vector<std::int32_t> tokens;
  const auto add = [&](std::string_view token) { tokens.push_back(token_of(config, names, token, text)); };
  const std::vector<std::string_view> lines =
      is_text ? split_at('\n', text) : std::vector<std::string_view>{text};
  const ColumnTokens& columns = config.task.options.input_tokens;
  if (!is_text && !columns.are_one_text() && text.find('\t') != text.npos) {
    const std::vector<std::string_view> texts = split_at('\t', text);
    require<DataError>(columns.size() == 1 || texts.size() == columns.size(),
                       "input: {} columns; give {} joined by tabs, or tokens separated by spaces",
                       texts.size(), columns.size());
    for (std::size_t i = 0; i < texts.size(); ++i) tokenize(texts[i], columns.of(i), add);
    return tokens;
  }
  for (const std::string_view& part : lines) {
    if (&part != lines.data()) add("\n");  // a token, whatever the others are
    tokenize(part, how, add);
  }
  if (boundary != kIgnore && (tokens.empty() || tokens.front() != boundary))
    tokens.insert(tokens.begin(), boundary);
  require<DataError>(!tokens.empty(), "input: is empty; give {}, of {}",
                     how == Tokenization::spaces ? "tokens separated by spaces"
                                                 : "a text of such tokens (generate: --prompt or --input)",
                     vocabulary_text(names, 160));
  return tokens;
}

// Takes an array of shape `sizes` from the start of `values`, as nested lists.
Json nested(std::span<const double>& values, std::span<const std::int64_t> sizes) {
  auto list = Json::array();
  for (std::int64_t i = 0; i < sizes[0]; ++i) {
    if (sizes.size() > 1) {
      list.push_back(nested(values, sizes.subspan(1)));
    } else {
      list.push_back(values.front());
      values = values.subspan(1);
    }
  }
  return list;
}

Json nested(std::span<const double> values, std::initializer_list<std::int64_t> sizes) {
  return nested(values, std::span<const std::int64_t>(sizes.begin(), sizes.size()));
}

Json named(const Names& names, const std::vector<std::int32_t>& tokens) {
  auto list = Json::array();
  for (const std::int32_t token : tokens) {
    list.push_back(nullptr);
    if (token != kIgnore) list.back() = names[static_cast<std::size_t>(token)];
  }
  return list;
}

}  // namespace

Names vocabulary(const ModelSource& model) { return token_names(model.config); }

std::vector<std::int32_t> input_tokens(const ModelSource& model, std::string_view text) {
  std::vector<std::int32_t> tokens = parse_tokens(model.config, vocabulary(model), text);
  require<DataError>(std::ssize(tokens) <= max_input_length(model.config),
                     "input: {} tokens; this model accepts at most {}", tokens.size(),
                     max_input_length(model.config));
  return tokens;
}

std::vector<GeneratedSequence> generate(const ModelSource& model, std::string_view text,
                                        const Generation& how) {
  require<ConfigError>(
      generates(model.config),
      "generate: requires model.kind encoder_decoder or recurrent, task text, or attention and model.output.per next; `thimble trace` shows what this model predicts");
  const std::vector<std::int32_t> tokens = input_tokens(model, text);
  const Names names = vocabulary(model);
  const Tokenization form = model.config.task.target_tokens();
  std::size_t written = 0;  // bytes that on_text has
  const auto on_tokens = [&](std::span<const std::int32_t> ids) {
    if (!how.on_text) return;
    std::string all = token_text(names, ids, form);
    while (all.ends_with("\uFFFD")) all.resize(all.size() - 3);  // may be the start of a character
    how.on_text(std::string_view(all).substr(std::min(written, all.size())));
    written = std::max(written, all.size());
  };
  std::vector<GeneratedSequence> sequences;
  const auto run = [&]<class R>() { return run_generation<R>(model, tokens, how, on_tokens); };
  for (const Hypothesis& hypothesis : with_precision(model.config, run)) {
    GeneratedSequence& sequence = sequences.emplace_back();
    sequence.log_probability = hypothesis.log_probability;
    sequence.log_probabilities = hypothesis.log_probabilities;
    sequence.finished = hypothesis.finished;
    for (const std::int32_t token : hypothesis.tokens)
      sequence.tokens.push_back(names[static_cast<std::size_t>(token)]);
    sequence.text = token_text(names, hypothesis.tokens, form);
    if (form == Tokenization::bytes) sequence.bytes = token_bytes(names, hypothesis.tokens);
  }
  if (how.on_text && written < sequences.front().text.size())
    how.on_text(std::string_view(sequences.front().text).substr(written));
  return sequences;
}

std::vector<std::string> unseen_in(const ModelSource& model, std::string_view text, std::int64_t count) {
  const Dataset dataset = make_dataset(model.config);
  const Names& names = dataset.names();
  if (model.config.source != nullptr && dataset.source().rows(Split::train) == 0)
    return {};  // no training rows are left
  count = readable(model, Split::train, count);
  Batch batch;
  std::vector<bool> seen(names.size());
  std::size_t shortest = std::numeric_limits<std::size_t>::max();
  // All over the split, as copies of a line follow each other.
  const std::int64_t size = std::max(dataset.size(Split::train), count);
  for (std::int64_t i = 0; i < count; ++i) {
    dataset.fill(Split::train, i * size / count, 1, batch);
    shortest = std::min(shortest, batch.input_of(0).size());
    for (const std::int32_t token : batch.input_of(0)) seen[static_cast<std::size_t>(token)] = true;
  }
  std::vector<std::string> unseen;
  const std::vector<std::int32_t> input = input_tokens(model, text);
  for (const std::int32_t token : input) {
    const auto index = static_cast<std::size_t>(token);
    if (!seen[index]) unseen.push_back(names[index]);
    seen[index] = true;  // reported once
  }
  if (count > 0 && input.size() < shortest && model.config.model.attention.mask != Mask::causal)
    unseen.push_back(fmt::format("so short an input (theirs have {} tokens or more)", shortest));
  return unseen;
}

ForwardTrace trace_input(const ModelSource& model, std::string_view text) {
  const std::vector<std::int32_t> tokens = input_tokens(model, text);
  return with_precision(model.config, [&]<class R>() { return run_input<R>(model, tokens); });
}

std::int64_t readable(const ModelSource& model, Split split, std::int64_t count) {
  const Dataset dataset = make_dataset(model.config);
  const bool endless = split == Split::train && dataset.size(split) == 0;
  return endless ? count : std::min(count, dataset.size(split));
}

void trace_split(const ModelSource& model, Split split, std::int64_t count,
                 const std::function<void(const ForwardTrace&)>& visit, const TraceOptions& options) {
  require_weights(model.config.model);
  count = readable(model, split, count);
  with_precision(model.config, [&]<class R>() { run_split<R>(model, split, count, visit, options); });
}

std::vector<ForwardTrace::LayerWeights> ForwardTrace::by_layer(const ModelConfig& model) const {
  std::vector<LayerWeights> out;
  std::span<const double> rest = attention;
  for (const AttentionLayer& layer : attention_layers(model)) {
    const auto size = static_cast<std::size_t>(layer.heads * queries(layer) * keys(layer));
    out.push_back({{layer.heads, queries(layer), keys(layer)}, rest.first(size)});
    rest = rest.subspan(size);
  }
  return out;
}

std::span<const double> ForwardTrace::weights(const ModelConfig& model, HeadId id) const {
  const LayerWeights layer = by_layer(model)[static_cast<std::size_t>(id.layer)];
  const auto size = static_cast<std::size_t>(layer.shape[1] * layer.shape[2]);
  return layer.values.subspan(static_cast<std::size_t>(id.head) * size, size);
}

Json to_json(std::span<const AttentionLayer> layers) {
  const auto sequence = [](bool source) { return source ? "source" : "tokens"; };
  auto list = Json::array();
  for (const AttentionLayer& layer : layers)
    list.push_back({{"name", layer.name()},
                    {"queries", sequence(layer.queries_source)},
                    {"keys", sequence(layer.keys_source)},
                    {"causal", layer.causal}});
  return list;
}

Json sequence_json(const ForwardTrace& trace, const Names& names) {
  Json json = Json::object();
  if (!trace.source.empty()) json["source"] = named(names, trace.source);
  json["tokens"] = named(names, trace.tokens);
  if (!trace.targets.empty()) json["targets"] = named(names, trace.targets);
  json["predictions"] = named(names, trace.predictions);
  for (const char guessed : trace.guessed) json["guessed"].push_back(guessed != 0);
  if (!trace.guessed_reason.empty()) json["guessed_reason"] = trace.guessed_reason;
  return json;
}

Json example_json(const ForwardTrace& trace, const ModelConfig& model, const Names& names) {
  Json json = sequence_json(trace, names);
  Json& attention = json["attention"] = Json::array();
  for (auto [shape, values] : trace.by_layer(model)) attention.push_back(nested(values, shape));
  for (const DoubleMatrix& norms : trace.value_norms)
    json["value_norms"].push_back(map_json(norms.values, norms.cols));
  return json;
}

Json to_json(const ForwardTrace& trace, const ModelConfig& model, const Names& names) {
  const std::int64_t rows = std::ssize(trace.predictions), columns = std::ssize(trace.logits) / rows;
  Json json = example_json(trace, model, names);
  if (layout_of(model) == Layout::seq2seq) {
    json["finished"] = trace.finished;
    json["attentions"] = to_json(attention_layers(model));
  }
  json["vocabulary"] = names;
  if (!trace.outputs.empty()) json["outputs"] = named(names, trace.outputs);
  json["probabilities"] = nested(trace.probabilities, {rows, columns});
  json["logits"] = nested(trace.logits, {rows, columns});
  Json& lens = json["logit_lens"] = Json::array();
  const std::vector<std::string> depths = lens_names(model);
  for (std::size_t d = 0; d < trace.lens_predictions.size() / trace.predictions.size(); ++d) {
    const auto first = static_cast<std::ptrdiff_t>(d) * rows;
    const auto predictions = trace.lens_predictions.begin() + first;
    const auto probabilities = trace.lens_probabilities.begin() + first;
    lens.push_back({{"after", depths[d]},
                    {"predictions", named(names, {predictions, predictions + rows})},
                    {"probabilities", std::vector<double>(probabilities, probabilities + rows)}});
  }
  return json;
}

}  // namespace thimble
