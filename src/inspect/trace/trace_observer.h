// Traces of the sequences of evaluation passes.
#pragma once

#include <functional>
#include <vector>

#include "inspect/scores/whole_weights.h"
#include "thimble/inspect/forward_trace.h"
#include "train/step/evaluator.h"
#include "train/step/generation.h"

namespace thimble {

inline namespace THIMBLE_PRECISION {

// Calls visit(trace) for each of the first `count` sequences, in order, during passes over all positions. Traces
// have logits and probabilities if `has_logits`, and the norms of values if `has_values`.
class TraceObserver : public ChunkHooks {
 public:
  using Visit = std::function<void(const ForwardTrace&)>;

  TraceObserver(const Model& model, const Dataset& data, std::int64_t count, Visit visit, bool has_logits,
                bool has_values = false)
      : model_(model),
        layers_(model.attention_layers()),
        data_(data),
        whole_(layers_),
        count_(count),
        visit_(std::move(visit)),
        has_logits_(has_logits),
        has_values_(has_values) {}

  void begin(const Chunk& chunk) override;
  bool may_replace(Site) const override { return false; }
  void observe(Site site, const Shape& shape, ConstMatrixView value) override;
  void end() override;

 private:
  void add_attention(const AttentionLayer&, ConstMatrixView weights, const Shape& shape);
  void add_value_norms(std::size_t layer, ConstMatrixView projected);
  void add_predictions(ConstMatrixView logits);

  const Model& model_;
  const std::span<const AttentionLayer> layers_;
  const Dataset& data_;
  WholeWeights whole_;
  const std::int64_t count_;
  const Visit visit_;
  const bool has_logits_, has_values_;
  const Batch* batch_ = nullptr;
  std::vector<ForwardTrace> traces_;  // by sequence of the chunk
};

// Returns the batch of the user's tokens, without labels: those of an encoder-decoder are the source, and the decoder input
// is its greedy output. `finished` is set to whether that ended.
Batch own_batch(const Model& network, const Dataset& dataset, const std::vector<std::int32_t>& tokens,
                bool& finished);

// Runs the model on the user's tokens, as trace_input() does. With interventions, which may replace values of
// the pass or observe them, there is no logit lens; the decoder input is that without them.
ForwardTrace trace_tokens(const Model& network, const Dataset& dataset,
                          const std::vector<std::int32_t>& tokens, ChunkHooks* interventions = nullptr);

}  // namespace THIMBLE_PRECISION

// Jobs of forward_trace.h in the precision R, float or double.
template <class R>
ForwardTrace run_input(const ModelSource& model, const std::vector<std::int32_t>& tokens);
template <class R>
void run_split(const ModelSource& model, Split split, std::int64_t count,
               const std::function<void(const ForwardTrace&)>& visit, const TraceOptions& options);
template <class R>
std::vector<Hypothesis> run_generation(const ModelSource& model, const std::vector<std::int32_t>& tokens,
                                       const Generation& how, const OnTokens& on_tokens);

}  // namespace thimble
