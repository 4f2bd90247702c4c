// How good a model is on a whole split.
#include <algorithm>
#include <cmath>

#include "thimble/core/error.h"
#include "thimble/model/decoding.h"
#include "thimble/train/trainer.h"

namespace thimble::inline THIMBLE_PRECISION {

std::int64_t Trainer::count_written(const Batch& batch) const {
  const std::unique_ptr<Decoding> decoding = model_->decode(model_input(batch));
  const AnswerMarks marks{dataset_.begin_token(), dataset_.end_token(), dataset_.length()};
  std::int64_t right = 0;
  const std::vector<Answer> answers = greedy_answers(*decoding, batch.sequences, marks);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto first = batch.tokens.begin() + static_cast<std::ptrdiff_t>(i) * batch.length;
    right +=
        std::equal(first + 1, first + batch.lengths[i], answers[i].tokens.begin(), answers[i].tokens.end());
  }
  return right;
}

SplitReport Trainer::evaluate(Split split, std::int64_t limit) {
  const std::int64_t size = dataset_.size(split);
  const std::int64_t count = limit > 0 && (size == 0 || limit < size) ? limit : size;
  require<DataError>(count > 0, "evaluate: the {} split is empty or endless, give a limit",
                     split_name(split));
  const bool writes = dataset_.layout() == Layout::pairs;
  refresh_transposes();
  chunks_.assign(static_cast<std::size_t>((count + micro_batch_ - 1) / micro_batch_), {});
  pool_.run(static_cast<std::int64_t>(chunks_.size()), [&](std::int64_t i, int thread) {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    const std::int64_t first = i * micro_batch_;
    dataset_.fill(split, first, std::min(micro_batch_, count - first), worker.batch);
    worker.inference.bind(model_->parameters(), {}, &transposes_);
    worker.inference.rewind();
    Totals& chunk = chunks_[static_cast<std::size_t>(i)];
    forward(worker.inference, worker.batch, {}, chunk);
    if (writes) chunk.written = count_written(worker.batch);
  });
  Totals totals;
  for (const Totals& chunk : chunks_) totals.add(chunk);
  const auto labelled = static_cast<double>(std::max<std::int64_t>(1, totals.labelled));
  SplitReport report{
      .loss = totals.loss / labelled,
      .accuracy = static_cast<double>(totals.correct) / labelled,
      .sequence_accuracy = static_cast<double>(totals.correct_sequences) / static_cast<double>(count),
      .sequences = count,
      .loss_error = loss_error(),
      .leak = {},
      .written_accuracy = {}};
  if (writes) report.written_accuracy = static_cast<double>(totals.written) / static_cast<double>(count);
  report.leak = leak(split, report);
  return report;
}

// From the spread between chunks, each weighed by its labels (the ratio estimator of survey sampling).
double Trainer::loss_error() const {
  constexpr std::size_t kFewest = 8;
  if (chunks_.size() < kFewest) return 0;
  Totals totals;
  for (const Totals& chunk : chunks_) totals.add(chunk);
  const auto labelled = static_cast<double>(std::max<std::int64_t>(1, totals.labelled));
  const double mean = totals.loss / labelled, n = static_cast<double>(chunks_.size());
  double squares = 0;
  for (const Totals& chunk : chunks_) {
    const double deviation = chunk.loss - mean * static_cast<double>(chunk.labelled);
    squares += deviation * deviation;
  }
  return std::sqrt(squares * n / (n - 1)) / labelled;
}

std::optional<double> Trainer::leak(Split split, const SplitReport& report) const {
  const Task& task = dataset_.task();
  const bool fresh = split != Split::train || dataset_.size(split) == 0;
  // An answer's end, where there is one, is a label, too, and how well it can be told is unknown.
  const bool known = task.floor != nullptr && dataset_.layout() != Layout::pairs;
  if (!fresh || !known || report.loss_error == 0) return std::nullopt;
  const double floor = task.floor(config_.task);
  return report.loss < floor - 4 * report.loss_error ? std::optional(floor) : std::nullopt;
}

}  // namespace thimble::inline THIMBLE_PRECISION
