#include "train/step/forward.h"

#include <algorithm>

#include "engine/kernels/cross_entropy.h"
#include "thimble/engine/make_model.h"
#include "thimble/engine/ops.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

std::unique_ptr<Model> make_model(const ModelConfig& config, const Dataset& data) {
  return make_model(config, data.sizes());
}

ModelInput model_input(const Batch& batch) {
  return {.tokens = batch.tokens,
          .length = batch.length,
          .lengths = batch.lengths,
          .sources = batch.sources,
          .source_length = batch.source_length,
          .source_lengths = batch.source_lengths};
}

ModelInput labeled_input(const Batch& batch) {
  ModelInput input = model_input(batch);
  if (batch.rows.size() < batch.labels.size()) input.rows = batch.rows;
  return input;
}

Var add_loss(Var logits, const Batch& batch, Real label_smoothing, EvalSums& sums,
             std::span<SequenceResult> per_sequence, double loss_cap) {
  constexpr std::int32_t kAny[] = {0};
  if (batch.row_labels.empty()) return scale(cross_entropy(select_rows(logits, kAny), kAny), 0);
  const Var loss = cross_entropy(logits, batch.row_labels, {.smoothing = label_smoothing, .normalizer = 1});
  sums.loss += static_cast<double>(loss.item());
  const MatrixView z = logits.value();
  const std::int64_t rows = std::ssize(batch.rows), of_sequence = std::ssize(batch.labels) / batch.sequences;
  const MatrixView dlogits =  // of one sequence
      per_sequence.empty() ? MatrixView{} : logits.tape().scratch(std::min(rows, of_sequence), z.cols);
  const auto sequence_of = [&](std::int64_t row) {
    return batch.rows[static_cast<std::size_t>(row)] / of_sequence;
  };
  for (std::int64_t first = 0, last = 0; first < rows; first = last) {
    const auto sequence = sequence_of(first);
    while (last < rows && sequence_of(last) == sequence) ++last;
    const std::int64_t count = last - first;
    const auto labels =
        std::span(batch.row_labels).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    const auto countable = batch.countable_labels.empty() ? labels
                                                          : std::span(batch.countable_labels)
                                                                .subspan(static_cast<std::size_t>(first),
                                                                         static_cast<std::size_t>(count));
    const std::int64_t correct = kernels::count_correct(z.row_block(first, count), countable);
    sums.labeled += count;
    sums.correct += correct;
    sums.correct_sequences += correct == count;
    if (per_sequence.empty()) continue;
    SequenceResult& result = per_sequence[static_cast<std::size_t>(sequence)];
    result = {.loss = kernels::cross_entropy_forward(dlogits.row_block(0, count), z.row_block(first, count),
                                                     labels, 0, 1),
              .labeled = count,
              .correct = correct};
    if (!batch.knowable_labels.empty()) {
      const auto knowable = std::span(batch.knowable_labels)
                                .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      result.knowable = count - std::ranges::count(knowable, kIgnore);
      result.knowable_correct = kernels::count_correct(z.row_block(first, count), knowable);
    }
    result.capped_loss = result.loss;
    if (loss_cap == kNoCap) continue;
    result.capped_loss = 0;
    for (std::int64_t row = 0; row < count; ++row)
      result.capped_loss += std::min(
          loss_cap, kernels::cross_entropy_forward(dlogits.row_block(row, 1), z.row_block(first + row, 1),
                                                   labels.subspan(static_cast<std::size_t>(row), 1), 0, 1));
  }
  return loss;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
