#include "inspect/patching/text_pairs.h"

#include <algorithm>
#include <string>

#include "engine/model/finite.h"
#include "inspect/trace/trace_observer.h"
#include "thimble/engine/error.h"
#include "thimble/train/run.h"

namespace thimble {

inline namespace THIMBLE_PRECISION {

namespace {

// Sets the labels at these rows of the logits, all if there is none, to the model's answers.
void answer(const Model& model, std::span<const std::int64_t> rows, Batch& batch) {
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  const MatrixView logits = model(tape, model_input(batch), {}).value();
  require_finite(tape, model.config(), "input");
  batch.labels.assign(static_cast<std::size_t>(logits.rows), kIgnore);
  for (std::int64_t row = 0; row < logits.rows; ++row) {
    if (!rows.empty() && std::ranges::find(rows, row) == rows.end()) continue;
    const Real* const z = logits.row(row);
    const auto label = static_cast<std::int32_t>(std::max_element(z, z + logits.cols) - z);
    batch.labels[static_cast<std::size_t>(row)] = label;
    batch.rows.push_back(static_cast<std::int32_t>(row));
    batch.row_labels.push_back(label);
  }
}

}  // namespace

std::vector<PairBatch> text_pairs(Evaluator& evaluator, const ModelSource& model,
                                  std::span<const TextPair> pairs) {
  const Dataset& dataset = evaluator.dataset();
  const bool is_last = dataset.layout() == Layout::next || dataset.task().causal;
  std::vector<PairBatch> batches;
  for (const TextPair& pair : pairs) {
    try {
      PairBatch& batch = batches.emplace_back();
      bool finished = false;
      batch.clean = own_batch(evaluator.model(), dataset, input_tokens(model, pair.clean), finished);
      batch.corrupted = own_batch(evaluator.model(), dataset, input_tokens(model, pair.corrupted), finished);
      std::vector<std::int64_t> rows = pair.positions;
      require<DataError>(rows.empty() || dataset.layout() != Layout::sequence,
                         "positions: this model has one answer a sequence; leave them out");
      for (const std::int64_t row : rows)
        require<DataError>(row < batch.clean.length, "positions: {}: must be below {}, as they count from 0",
                           row, batch.clean.length);
      if (rows.empty() && is_last) rows.push_back(batch.clean.length - 1);
      const std::string reason = obstacle(batch.clean, batch.corrupted);
      require<DataError>(reason.empty(), "{}", reason);
      answer(evaluator.model(), rows, batch.clean);
      answer(evaluator.model(), rows, batch.corrupted);
    } catch (const DataError& e) {
      throw DataError((pair.where.empty() ? "patching: " : pair.where) + e.what());
    }
  }
  return batches;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
