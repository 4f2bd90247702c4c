#include "train/step/eval_sums.h"

#include <algorithm>
#include <cmath>

#include "train/files/hash.h"

namespace thimble {

std::uint64_t draw_number(const Dataset& data, const Batch& batch, std::int64_t sequence,
                          std::int64_t index) {
  if (data.task().open == nullptr) return static_cast<std::uint64_t>(index);
  const auto input = batch.input_of(sequence);
  return hash_of({reinterpret_cast<const char*>(input.data()), input.size_bytes()});
}

void DrawSums::add_products(const Draw& a, const Draw& b, double times) {
  correct_squared += times * a.correct * b.correct;
  correct_labeled += times / 2 * (a.correct * b.labeled + a.labeled * b.correct);
  labeled_squared += times * a.labeled * b.labeled;
  loss_squared += times * a.loss * b.loss;
  loss_labeled += times / 2 * (a.loss * b.labeled + a.labeled * b.loss);
}

void DrawSums::add_draw(const Draw& draw) {
  DrawSums one{.draws = 1, .first = draw, .last = draw};
  one.add_products(draw, draw, 1);
  add(one);
}

void DrawSums::add(const DrawSums& next) {
  if (next.draws == 0) return;
  if (draws == 0) {
    *this = next;
    return;
  }
  correct_squared += next.correct_squared;
  correct_labeled += next.correct_labeled;
  labeled_squared += next.labeled_squared;
  loss_squared += next.loss_squared;
  loss_labeled += next.loss_labeled;
  draws += next.draws;
  Draw end = next.last;
  if (last.number == next.first.number) {
    add_products(last, next.first, 2);
    const Draw both{last.number, last.labeled + next.first.labeled, last.correct + next.first.correct,
                    last.loss + next.first.loss};
    --draws;
    if (next.draws == 1) end = both;
    if (draws == next.draws) first = both;
  }
  last = end;
}

void EvalSums::add(const EvalSums& other) {
  loss += other.loss;
  labeled += other.labeled;
  correct += other.correct;
  correct_sequences += other.correct_sequences;
  exact_matches += other.exact_matches;
  usual += other.usual;
  spread.add(other.spread);
}

namespace {

// Returns the standard error of the ratio `sum` / labels by the ratio estimator of survey sampling, from the
// spread between draws: `squared` and `labeled` are sums over them of their part of `sum`, squared and
// times their labels. Fewer than two draws have no spread.
std::optional<double> ratio_error(const EvalSums& sums, double sum, double squared, double labeled) {
  if (sums.spread.draws < 2) return std::nullopt;
  const double n = static_cast<double>(sums.spread.draws), mean = sum / sums.labels();
  const double squares = squared - 2 * mean * labeled + mean * mean * sums.spread.labeled_squared;
  return std::sqrt(std::max(0.0, squares) * n / (n - 1)) / sums.labels();
}

}  // namespace

EvalResult mean_of(std::span<const EvalSums> chunks, std::int64_t sequences) {
  EvalSums sums;
  for (const EvalSums& chunk : chunks) sums.add(chunk);
  EvalResult result;
  result.loss = sums.loss / sums.labels();
  result.accuracy = static_cast<double>(sums.correct) / sums.labels();
  result.sequence_accuracy = static_cast<double>(sums.correct_sequences) / static_cast<double>(sequences);
  result.sequences = sequences;
  result.labels = sums.labeled;
  const DrawSums& spread = sums.spread;
  result.distinct = spread.draws;
  result.loss_error = ratio_error(sums, sums.loss, spread.loss_squared, spread.loss_labeled);
  result.accuracy_error =
      ratio_error(sums, static_cast<double>(sums.correct), spread.correct_squared, spread.correct_labeled);
  return result;
}

namespace {

constexpr std::int64_t kMaxDrawn = 10000, kAtOnce = 256;

}  // namespace

std::optional<std::int32_t> usual_answer(const Dataset& data) {
  const Task& task = data.task();
  if (task.open == nullptr && data.layout() != Layout::seq2seq) return std::nullopt;
  if (task.open != nullptr && data.source().rows(Split::train) == 0) return kIgnore;
  std::int64_t count = data.size(Split::train);
  if (task.open == nullptr) count = count == 0 ? kMaxDrawn : std::min(count, kMaxDrawn);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(data.outputs()));
  Batch batch;
  for (std::int64_t first = 0; first < count; first += kAtOnce) {
    data.fill(Split::train, first, std::min(kAtOnce, count - first), batch);
    for (const std::int32_t label : batch.row_labels) ++counts[static_cast<std::size_t>(label)];
  }
  if (const std::int32_t unknown = data.output_of(data.unknown_token()); unknown != kIgnore)
    counts[static_cast<std::size_t>(unknown)] = 0;
  return static_cast<std::int32_t>(std::ranges::max_element(counts) - counts.begin());
}

void EqualInputs::add(const Dataset& data, const Batch& batch, std::int64_t first) {
  const std::size_t before = of.size();
  for (std::int64_t i = 0; i < batch.sequences; ++i) {
    const std::uint64_t number = draw_number(data, batch, i, first + i);
    if (labels.empty() || number != last) labels.push_back(0);
    of.push_back(std::ssize(labels) - 1);
    last = number;
  }
  const std::int64_t of_sequence = std::ssize(batch.labels) / batch.sequences;
  for (const auto row : batch.rows)
    ++labels[static_cast<std::size_t>(of[before + static_cast<std::size_t>(row / of_sequence)])];
}

std::int64_t most_labels(const Dataset& data) {
  const bool trains = data.task().open == nullptr || data.source().rows(Split::train) > 0;
  const Split split = trains ? Split::train : Split::test;
  const std::int64_t size = data.size(split), count = size == 0 ? kMaxDrawn : std::min(size, kMaxDrawn);
  EqualInputs equal;
  Batch batch;
  for (std::int64_t first = 0; first < count; first += kAtOnce) {
    data.fill(split, first, std::min(kAtOnce, count - first), batch);
    equal.add(data, batch, first);
  }
  return std::max<std::int64_t>(1, equal.most_labels());
}

std::optional<double> lowest_loss(const Dataset& data, Split split) {
  // Source::floor() does not include <end>, which seq2seq targets have.
  const bool fresh = split != Split::train || data.size(split) == 0;
  if (!fresh || data.layout() == Layout::seq2seq) return std::nullopt;
  return data.source().floor();
}

}  // namespace thimble
