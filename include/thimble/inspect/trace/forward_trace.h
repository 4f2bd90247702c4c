// What a model makes of single sequences, one's own or those of a split. T: tokens of the sequence, for an
// encoder-decoder those that the decoder reads; S: tokens of its source; R: answers, T or, with one output
// per sequence, 1; V vocabulary, H heads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/data/listing.h"
#include "thimble/model/attention_layer.h"
#include "thimble/train/run.h"

namespace thimble {

// One sequence and the model's own forward pass over it, in evaluation mode.
struct ForwardTrace {
  std::vector<std::int32_t> tokens;       // (T)
  std::vector<std::int32_t> source;       // (S), empty: there is none
  std::vector<std::int32_t> targets;      // (R), kIgnore where none is asked for; empty: not known
  std::vector<std::int32_t> predictions;  // (R), the likeliest
  std::vector<double> logits;             // (R, V)
  std::vector<double> probabilities;      // (R, V)
  // Weight of a query on a key, after mask and softmax: by attention layer (H, queries, keys).
  std::vector<double> attention;

  std::int64_t queries(const AttentionLayer& l) const {
    return std::ssize(l.queries_source ? source : tokens);
  }
  std::int64_t keys(const AttentionLayer& l) const { return std::ssize(l.keys_source ? source : tokens); }
  // Returns those of one head, (queries, keys).
  std::span<const double> weights(const ModelConfig&, HeadId) const;
};

// Names of the tokens that the model reads and answers with.
Names vocabulary(const ModelSource& source);

// Runs the model on one's own sequence, names of tokens with white space between them: what the model reads,
// so for output `next` the input with as much of the answer as there is. For an encoder-decoder it is the
// source; the decoder then reads the answer that it gives, the likeliest token again and again. Throws
// DataError when it is empty, longer than the model takes or has a token that the vocabulary lacks, and
// CheckpointError when the weights do not fit the config.
ForwardTrace trace_input(const ModelSource& source, std::string_view text);

// Returns the tokens of a sequence that occur in none of the first `count` inputs of the train split, or of as
// many as are readable(). Throws as trace_input.
std::vector<std::string> unseen_tokens(const ModelSource& source, std::string_view text, std::int64_t count);

struct GeneratedSequence {
  std::vector<std::string> tokens;
  double log_probability;
};

// Generates outputs of an encoder-decoder for a source, the most probable first: by greedy decoding for 1 beam,
// otherwise by a beam search of that width. Throws as trace_input, and ConfigError for an encoder-only model.
std::vector<GeneratedSequence> generate(const ModelSource& source, std::string_view text, std::int64_t beams);

// Runs the model on the first `count` sequences of a split, all if there are fewer; visit(trace) is called
// for one after the other. Throws CheckpointError when the weights do not fit the config, and DataError when
// there is no sequence.
void trace_split(const ModelSource& source, Split split, std::int64_t count,
                 const std::function<void(const ForwardTrace&)>& visit);

// The number of sequences that trace_split reads.
std::int64_t readable(const ModelSource& source, Split split, std::int64_t count);

// {"source", "tokens", "targets", "predictions", "attention" [layer][head][query][key]}, tokens by name;
// targets are null where no answer is asked for, and left out where they are not known, as is the source
// where there is none. Layers are those of attention_layers().
Json example_json(const ForwardTrace&, const ModelConfig&, const Names&);

// The same with {"vocabulary", "probabilities" (R, V), "logits" (R, V)} and "attentions", unless the model
// has an encoder only.
Json to_json(const ForwardTrace&, const ModelConfig&, const Names&);

// [{"name": "cross.0", "queries": "source" or "tokens", "keys": "source" or "tokens", "causal"}]
Json to_json(std::span<const AttentionLayer>);

}  // namespace thimble
