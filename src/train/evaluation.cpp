// How good a model is on a whole split.
#include <algorithm>
#include <cmath>

#include "thimble/core/error.h"
#include "thimble/core/progress.h"
#include "thimble/data/table.h"
#include "thimble/model/decoding.h"
#include "thimble/model/finite.h"
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
  dataset_.require_rows(split);
  require<DataError>(count > 0, "evaluate: the {} split is empty or endless, give a limit",
                     split_name(split));
  const bool writes = dataset_.layout() == Layout::pairs;
  // Where the task does not say how good a constant answer is: own data, and answers that have an end.
  if (!usual_answer_ && (dataset_.task().table != nullptr || writes)) usual_answer_ = usual_answer();
  refresh_transposes();
  chunks_.assign(static_cast<std::size_t>((count + micro_batch_ - 1) / micro_batch_), {});
  ProgressCounter progress(fmt::format("evaluating the {} split", split_name(split)),
                           static_cast<double>(count));
  pool_.run(static_cast<std::int64_t>(chunks_.size()), [&](std::int64_t i, int thread) {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    const std::int64_t first = i * micro_batch_;
    dataset_.fill(split, first, std::min(micro_batch_, count - first), worker.batch);
    worker.inference.bind(model_->parameters(), {}, &transposes_);
    worker.inference.rewind();
    Totals& chunk = chunks_[static_cast<std::size_t>(i)];
    forward(worker.inference, worker.batch, {}, chunk);
    if (usual_answer_) chunk.usual = std::ranges::count(worker.batch.row_labels, *usual_answer_);
    if (!std::isfinite(chunk.loss))
      require_finite(worker.inference, config_.model,
                     fmt::format("the loss on the {} split is {}", split_name(split), std::abs(chunk.loss)));
    if (writes) chunk.written = count_written(worker.batch);
    progress.advance(static_cast<double>(worker.batch.sequences));
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
      .accuracy_error = accuracy_error(totals, count),
      .chance = chance(totals),
      .lowest_loss = lowest_loss(split)};
  if (writes) report.written_accuracy = static_cast<double>(totals.written) / static_cast<double>(count);
  if (report.lowest_loss && report.loss_error > 0 &&
      report.loss < *report.lowest_loss - 4 * report.loss_error)
    report.leak = report.lowest_loss;
  return report;
}

// From the spread between sequences, each weighed by its labels (the ratio estimator of survey sampling).
double Trainer::accuracy_error(const Totals& totals, std::int64_t sequences) {
  if (totals.labelled == 0 || sequences < 2) return 0;
  const auto labelled = static_cast<double>(totals.labelled), n = static_cast<double>(sequences);
  const double mean = static_cast<double>(totals.correct) / labelled;
  const double squares = static_cast<double>(totals.correct_squared) -
                         2 * mean * static_cast<double>(totals.correct_labelled) +
                         mean * mean * static_cast<double>(totals.labelled_squared);
  return std::sqrt(std::max(0.0, squares) * n / (n - 1)) / labelled;
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

// The answer that the training sequences have most often; kIgnore when they are gone.
std::int32_t Trainer::usual_answer() const {
  constexpr std::int64_t kMaxDrawn = 10000, kAtOnce = 256;
  const Task& task = dataset_.task();
  if (task.table != nullptr && task.table(config_.task).splits()[0] == 0) return kIgnore;
  std::int64_t count = dataset_.size(Split::train);
  if (task.table == nullptr) count = count == 0 ? kMaxDrawn : std::min(count, kMaxDrawn);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(dataset_.vocabulary()));
  Batch batch;
  for (std::int64_t first = 0; first < count; first += kAtOnce) {
    dataset_.fill(Split::train, first, std::min(kAtOnce, count - first), batch);
    for (const std::int32_t label : batch.row_labels) ++counts[static_cast<std::size_t>(label)];
  }
  return static_cast<std::int32_t>(std::ranges::max_element(counts) - counts.begin());
}

std::optional<double> Trainer::chance(const Totals& totals) const {
  if (totals.labelled == 0 || usual_answer_ == kIgnore) return std::nullopt;
  if (!usual_answer_) return dataset_.task().chance(config_.task);
  return static_cast<double>(totals.usual) / static_cast<double>(totals.labelled);
}

// An answer's end, where there is one, is a label, too, and how well it can be predicted is unknown.
std::optional<double> Trainer::lowest_loss(Split split) const {
  const Task& task = dataset_.task();
  const bool fresh = split != Split::train || dataset_.size(split) == 0;
  if (!fresh || task.floor == nullptr || dataset_.layout() == Layout::pairs) return std::nullopt;
  return task.floor(config_.task);
}

}  // namespace thimble::inline THIMBLE_PRECISION
