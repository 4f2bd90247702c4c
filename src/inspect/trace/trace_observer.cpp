#include "thimble/inspect/forward_trace.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "engine/core/portable_math.h"
#include "engine/model/finite.h"
#include "inspect/circuits/logit_lens.h"
#include "inspect/circuits/weights.h"
#include "inspect/trace/trace_observer.h"
#include "thimble/train/run.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

void TraceObserver::begin(const Chunk& chunk) {
  batch_ = &chunk.batch;
  whole_.begin(chunk.batch);
  const std::int64_t count = std::clamp<std::int64_t>(count_ - chunk.first, 0, batch_->sequences);
  traces_.assign(static_cast<std::size_t>(count), {});
  for (std::size_t b = 0; b < traces_.size(); ++b) {
    const auto sequence = static_cast<std::int64_t>(b);
    std::ranges::copy(batch_->tokens_of(sequence), std::back_inserter(traces_[b].tokens));
    if (batch_->source_length > 0)
      std::ranges::copy(batch_->source_of(sequence), std::back_inserter(traces_[b].source));
    std::int64_t weights = 0;
    for (const AttentionLayer& layer : layers_) {
      weights += layer.heads * traces_[b].queries(layer) * traces_[b].keys(layer);
      if (has_values_ && model_.attention(layer) != nullptr)
        traces_[b].value_norms.emplace_back(layer.heads, traces_[b].keys(layer));
    }
    traces_[b].attention.reserve(static_cast<std::size_t>(weights));
  }
}

void TraceObserver::observe(Site site, const Shape& shape, ConstMatrixView value) {
  if (const auto whole = whole_.observe(site, shape, value))
    add_attention(layers_[whole->layer], whole->weights, whole->shape);
  if (has_values_ && (site.kind == SiteKind::projections || site.kind == SiteKind::cross_keys_values))
    add_value_norms(static_cast<std::size_t>(site.layer), value);
  if (site.kind == SiteKind::logits) add_predictions(value);
}

void TraceObserver::end() { std::ranges::for_each(traces_, visit_); }

// weights (B H queries, keys), of shape (B, H, queries, keys)
void TraceObserver::add_attention(const AttentionLayer& layer, ConstMatrixView weights, const Shape& shape) {
  const std::int64_t queries = shape[2], rows = shape[1] * queries;  // per sequence
  for (std::size_t b = 0; b < traces_.size(); ++b) {
    const ForwardTrace& trace = traces_[b];
    const std::int64_t used_queries = trace.queries(layer), used_keys = trace.keys(layer);
    std::vector<double>& attention = traces_[b].attention;
    for (std::int64_t row = 0; row < rows; ++row) {
      const Real* from = weights.row(static_cast<std::int64_t>(b) * rows + row);
      if (row % queries < used_queries) attention.insert(attention.end(), from, from + used_keys);
    }
  }
}

// Adds the lengths of what the values, the last columns of `projected` (B keys, any + KV Dv), add by each head.
void TraceObserver::add_value_norms(std::size_t layer, ConstMatrixView projected) {
  const MultiHeadAttention& attention = *model_.attention(layers_[layer]);
  const AttentionSizes& sizes = attention.sizes;
  const std::int64_t first = projected.cols - sizes.kv_heads * sizes.d_value;
  const std::int64_t keys = projected.rows / batch_->sequences;
  for (std::int64_t h = 0; h < sizes.heads; ++h) {
    const DoubleMatrix output = transposed(in_double(attention.head(model_.parameters(), h).output));
    const std::int64_t column = first + h / sizes.heads_per_kv_head() * sizes.d_value;
    const ConstMatrixView values = projected.column_block(column, sizes.d_value);
    for (std::size_t b = 0; b < traces_.size(); ++b) {
      DoubleMatrix& norms = traces_[b].value_norms[layer];
      const auto row = static_cast<std::int64_t>(b) * keys;
      const DoubleMatrix added = matmul(in_double(values.row_block(row, norms.cols)), output);
      for (std::int64_t k = 0; k < norms.cols; ++k)
        norms(h, k) =
            std::sqrt(std::inner_product(added.row(k), added.row(k) + added.cols, added.row(k), 0.0));
    }
  }
}

void TraceObserver::add_predictions(ConstMatrixView logits) {
  const std::int64_t rows = logits.rows / batch_->sequences;
  for (std::size_t b = 0; b < traces_.size(); ++b) {
    ForwardTrace& trace = traces_[b];
    const std::int64_t first = static_cast<std::int64_t>(b) * rows;
    const std::int64_t outputs = std::min<std::int64_t>(rows, std::ssize(trace.tokens));
    for (std::int64_t row = first; row < first + outputs && !batch_->labels.empty(); ++row)
      trace.targets.push_back(data_.token_of(batch_->labels[static_cast<std::size_t>(row)]));
    for (std::size_t k = 0; k < batch_->knowable_labels.size(); ++k) {
      trace.guessed.resize(trace.targets.size());
      if (const std::int64_t row = batch_->rows[k] - first; row >= 0 && row < outputs)
        trace.guessed[static_cast<std::size_t>(row)] = batch_->knowable_labels[k] == kIgnore;
    }
    for (std::int64_t row = first; row < first + outputs; ++row) {
      const std::span<const Real> z(logits.row(row), static_cast<std::size_t>(logits.cols));
      const auto best = std::ranges::max_element(z);
      trace.predictions.push_back(data_.token_of(static_cast<std::int32_t>(best - z.begin())));
      if (!has_logits_) continue;
      double sum = 0;
      for (const Real x : z) sum += portable::exp(static_cast<double>(x) - static_cast<double>(*best));
      for (const Real x : z) {
        trace.logits.push_back(static_cast<double>(x));
        trace.probabilities.push_back(portable::exp(static_cast<double>(x) - static_cast<double>(*best)) /
                                      sum);
      }
    }
  }
}

namespace {

std::vector<std::int32_t> length_of(const std::vector<std::int32_t>& tokens) {
  return {static_cast<std::int32_t>(tokens.size())};
}

// Sets the batch to the decoder input of the greedy output: the beginning-of-sequence token and the output,
// without its last token where the model is too short for it. Returns whether the output ended.
bool generate_tokens(const Model& model, const Dataset& dataset, Batch& batch) {
  const Hypothesis output = hypotheses(model, dataset, batch, {}, {}).front();
  batch.tokens = output.tokens;
  batch.tokens.insert(batch.tokens.begin(), dataset.bos_token());
  if (std::ssize(batch.tokens) > model.max_length()) batch.tokens.pop_back();
  return output.finished;
}

void set_source(Batch& batch, const std::vector<std::int32_t>& tokens) {
  batch.sequences = 1;
  batch.sources = tokens;
  batch.source_length = std::ssize(tokens);
  batch.source_lengths = length_of(tokens);
}

}  // namespace

Batch own_batch(const Model& network, const Dataset& dataset, const std::vector<std::int32_t>& tokens,
                bool& finished) {
  Batch batch;
  batch.sequences = 1;
  batch.tokens = tokens;
  finished = true;
  if (dataset.layout() == Layout::seq2seq) {
    set_source(batch, tokens);
    finished = generate_tokens(network, dataset, batch);
  }
  batch.length = std::ssize(batch.tokens);
  batch.lengths = length_of(batch.tokens);
  return batch;
}

ForwardTrace trace_tokens(const Model& network, const Dataset& dataset,
                          const std::vector<std::int32_t>& tokens, ChunkHooks* interventions) {
  Chunk chunk;
  bool finished = true;
  const Batch& batch = chunk.batch = own_batch(network, dataset, tokens, finished);
  ForwardTrace trace;
  TraceObserver hooks(
      network, dataset, 1, [&](const ForwardTrace& visited) { trace = visited; }, true, true);
  Tape tape(Tape::Mode::inference);
  tape.bind(network.parameters(), {});
  hooks.begin(chunk);
  Combined intervened{interventions, &hooks};
  Hooks* const of_pass = interventions != nullptr ? static_cast<Hooks*>(&intervened) : &hooks;
  network(tape, model_input(batch), {.hooks = of_pass});
  require_finite(tape, network.config(), "input");
  hooks.end();
  trace.finished = finished;
  if (const Task& task = dataset.task(); task.knowable != nullptr && dataset.layout() == Layout::position) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      trace.guessed.push_back(task.knowable(dataset.config(), tokens, i) ? 0 : 1);
    trace.guessed_reason = task.unknowable;
  }
  trace.outputs.assign(dataset.output_tokens().begin(), dataset.output_tokens().end());
  if (interventions != nullptr) return trace;
  each_lens(network, tape, model_input(batch), [&](std::size_t depth, Var logits) {
    if (depth + 1 == lens_names(network.config()).size()) return;
    const MatrixView z = logits.value();
    for (std::int64_t row = 0; row < z.rows; ++row) {
      const std::span<const Real> all(z.row(row), static_cast<std::size_t>(z.cols));
      const auto best = std::ranges::max_element(all);
      double sum = 0;
      for (const Real x : all) sum += portable::exp(static_cast<double>(x) - static_cast<double>(*best));
      trace.lens_predictions.push_back(dataset.token_of(static_cast<std::int32_t>(best - all.begin())));
      trace.lens_probabilities.push_back(1 / sum);
    }
  });
  return trace;
}

}  // namespace THIMBLE_PRECISION

template <>
ForwardTrace run_input<Real>(const ModelSource& model, const std::vector<std::int32_t>& tokens) {
  const Evaluator evaluator(model.config, *model.open());
  return trace_tokens(evaluator.model(), evaluator.dataset(), tokens);
}

template <>
std::vector<Hypothesis> run_generation<Real>(const ModelSource& model,
                                             const std::vector<std::int32_t>& tokens, const Generation& how,
                                             const OnTokens& on_tokens) {
  const Evaluator evaluator(model.config, *model.open());
  Batch batch;
  batch.sequences = 1;
  batch.tokens = tokens;
  if (evaluator.dataset().layout() == Layout::seq2seq) set_source(batch, tokens);
  return hypotheses(evaluator.model(), evaluator.dataset(), batch, how, on_tokens);
}

template <>
void run_split<Real>(const ModelSource& model, Split split, std::int64_t count,
                     const std::function<void(const ForwardTrace&)>& visit, const TraceOptions& options) {
  Evaluator evaluator(model.config, *model.open());
  if (options.untrained) evaluator.model().init(*options.untrained);
  evaluator.select(split, count);
  TraceObserver hooks(evaluator.model(), evaluator.dataset(), count, visit, options.logits);
  ProgressCounter progress("reading attention", evaluator.observe_cost());
  evaluator.report_to(progress);
  evaluator.observe(hooks);
}

}  // namespace thimble
