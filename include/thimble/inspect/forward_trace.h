// Forward passes over single sequences, the user's own or those of a split. T: tokens of the sequence, for an
// encoder-decoder the decoder input; S: tokens of its source; R: outputs, T or, with one output per sequence,
// 1; V vocabulary, H heads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/engine/attention_layer.h"
#include "thimble/inspect/spectral.h"
#include "thimble/train/generation.h"
#include "thimble/train/json.h"
#include "thimble/train/listing.h"

namespace thimble {

struct ModelSource;

// A forward pass over one sequence, in evaluation mode.
struct ForwardTrace {
  std::vector<std::int32_t> tokens;       // (T)
  std::vector<std::int32_t> source;       // (S); empty in an encoder-only model
  std::vector<std::int32_t> targets;      // (R), kIgnore without a label; empty when unknown
  std::vector<std::int32_t> predictions;  // (R), the most probable
  // (R), whether a target can only be guessed or, of the user's own input, none is asked for; empty: not stated, or none.
  std::vector<char> guessed{};
  std::string_view guessed_reason{};  // of the user's own input
  std::vector<std::int32_t> outputs;  // (V) of a model whose outputs are answers: their tokens; else empty
  std::vector<double> logits;         // (R, V)
  std::vector<double> probabilities;  // (R, V)
  // Attention weights after mask and softmax: for each attention layer (H, queries, keys).
  std::vector<double> attention;
  // For each attention layer (H, keys): the length of a key's value after the output projection of the head, the f(x) of
  // Kobayashi et al. 2020, without the bias of that projection; of inspect() and trace_input() alone, and not of a recurrent
  // model.
  std::vector<DoubleMatrix> value_norms{};
  // Predictions of the logit lens and their probabilities, (depths of lens_names() - 1, R); of the user's
  // input alone. The last depth is the model's own.
  std::vector<std::int32_t> lens_predictions;
  std::vector<double> lens_probabilities;
  bool finished = true;  // false: the output of an encoder-decoder was cut at the longest that the model has

  std::int64_t queries(const AttentionLayer& l) const {
    return std::ssize(l.queries_source ? source : tokens);
  }
  std::int64_t keys(const AttentionLayer& l) const { return std::ssize(l.keys_source ? source : tokens); }
  // The attention weights of a layer: `shape` is (heads, queries, keys).
  struct LayerWeights {
    std::vector<std::int64_t> shape;
    std::span<const double> values;
  };
  std::vector<LayerWeights> by_layer(const ModelConfig&) const;
  // Returns the attention weights of one head, (queries, keys).
  std::span<const double> weights(const ModelConfig&, HeadId) const;
};

// Returns the names of the model's tokens.
Names vocabulary(const ModelSource& model);

// Returns the tokens of the user's sequence, names separated by white space. Throws DataError when it is
// empty, longer than the model accepts or has a token outside the vocabulary. Reads no weights.
std::vector<std::int32_t> input_tokens(const ModelSource& model, std::string_view text);

// Runs the model on the user's sequence, token names separated by white space: the model input, so for output
// `next` the input with the known part of the target. For an encoder-decoder it is the source; the decoder
// input is then the model's greedy output. Throws DataError when the sequence is empty, longer than the model
// accepts or has a token outside the vocabulary, and CheckpointError when the weights do not match the
// config.
ForwardTrace trace_input(const ModelSource& model, std::string_view text);

// Returns what none of `count` inputs of the train split has, or of as many as are readable(): tokens of this one, and its
// length where all are longer and the mask is not causal. Throws as trace_input.
std::vector<std::string> unseen_in(const ModelSource& model, std::string_view text, std::int64_t count);

// Generates outputs for a source, or, with output `next`, what follows the model input; such outputs have no end
// and all tokens that they may have. Those of a search are sorted, the most probable first. Throws as
// trace_input, and ConfigError for a model that does not generate, or for more tokens than it can write.
std::vector<GeneratedSequence> generate(const ModelSource& model, std::string_view text, const Generation&);

struct TraceOptions {
  // The seed of the initial values that the model has in place of its weights, if any.
  std::optional<std::uint64_t> untrained{};
  bool logits = true;  // whether traces have logits and probabilities, which large vocabularies make large
};

// Runs the model on the first `count` sequences of a split, all if there are fewer, and calls visit(trace)
// for each in order. Throws CheckpointError when the weights do not match the config, and DataError when there
// is no sequence.
void trace_split(const ModelSource& model, Split split, std::int64_t count,
                 const std::function<void(const ForwardTrace&)>& visit, const TraceOptions& options = {});

// Returns the number of sequences that trace_split reads.
std::int64_t readable(const ModelSource& model, Split split, std::int64_t count);

// Returns {"source", "tokens", "targets", "predictions", "guessed"}, tokens by name. Targets without a label are null;
// unknown targets, a missing source, and `guessed` where it is not stated are left out.
Json sequence_json(const ForwardTrace&, const Names&);

// Returns sequence_json with "attention" [layer][head][query][key] and, where there are any, "value_norms"
// [layer][head][key], layers as in attention_layers().
Json example_json(const ForwardTrace&, const ModelConfig&, const Names&);

// Returns example_json with "vocabulary", "probabilities" (R, V), "logits" (R, V), "logit_lens" [{"after",
// "predictions", "probabilities"}] and, unless the model is encoder-only, "attentions".
Json to_json(const ForwardTrace&, const ModelConfig&, const Names&);

// Returns [{"name": "cross.0", "queries": "source" or "tokens", "keys": "source" or "tokens", "causal"}]
Json to_json(std::span<const AttentionLayer>);

}  // namespace thimble
