#include "inspect/patching/pairs.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "engine/core/portable_math.h"
#include "engine/model/finite.h"
#include "inspect/effects/measure_effects.h"
#include "thimble/engine/decoding.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

constexpr std::size_t kPairsPerBatch = 16;

Batch read_sequence(const Evaluator& evaluator, std::int64_t index) {
  Batch batch;
  evaluator.dataset().fill(evaluator.split(), index, 1, batch);
  return batch;
}

// Returns why the labels of two inputs cannot be compared, or the inputs; "" when they can.
std::string obstacle_of_labels(const Batch& a, const Batch& b) {
  const std::string reason = obstacle(a, b);
  const bool same = reason.empty() && a.labels == b.labels;
  return same ? "the inputs have the same labels; choose two that differ" : reason;
}

// Returns whether the labels of every pair differ somewhere.
bool labels_differ(const PairBatch& batch) {
  const std::vector<std::int32_t>&clean = batch.clean.labels, &corrupted = batch.corrupted.labels;
  const auto of_pair = std::ssize(clean) / batch.clean.sequences;
  for (auto first = clean.begin(), other = corrupted.begin(); first != clean.end();
       first += of_pair, other += of_pair)
    if (std::equal(first, first + of_pair, other)) return false;
  return true;
}

}  // namespace

std::string obstacle(const Batch& clean, const Batch& corrupted) {
  const auto lengths = [](const char* what, const auto& x, const auto& y) {
    return fmt::format("the inputs have {} {} and {}; choose two of equal length", what, x[0], y[0]);
  };
  if (clean.source_length > 0 && clean.source_lengths != corrupted.source_lengths)
    return lengths("sources of lengths", clean.source_lengths, corrupted.source_lengths);
  if (clean.lengths != corrupted.lengths)
    return lengths(clean.source_length > 0 ? "answers of lengths" : "lengths", clean.lengths,
                   corrupted.lengths);
  if (clean.rows != corrupted.rows)
    return "the inputs have labels at different positions; choose two with the same";
  const bool same = clean.tokens == corrupted.tokens && clean.sources == corrupted.sources;
  return same ? "the inputs are the same; change a token of one" : "";
}

std::vector<ExamplePair> examples_of(const Evaluator& evaluator, std::span<const InputPair> pairs) {
  std::vector<ExamplePair> examples(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    evaluator.dataset().example(evaluator.split(), pairs[i].clean, examples[i].clean);
    evaluator.dataset().example(evaluator.split(), pairs[i].corrupted, examples[i].corrupted);
  }
  return examples;
}

std::vector<PairBatch> batches_of(const Dataset& dataset, std::span<const ExamplePair> pairs) {
  std::vector<PairBatch> batches;
  while (!pairs.empty()) {
    std::vector<Example> clean, corrupted;
    for (const ExamplePair& pair : pairs.first(std::min(kPairsPerBatch, pairs.size()))) {
      clean.push_back(pair.clean);
      corrupted.push_back(pair.corrupted);
    }
    pairs = pairs.subspan(clean.size());
    PairBatch& batch = batches.emplace_back();
    dataset.fill(clean, batch.clean);
    dataset.fill(corrupted, batch.corrupted);
  }
  return batches;
}

std::vector<InputPair> draw_pairs(const Evaluator& evaluator, std::int64_t count) {
  std::vector<Batch> sequences;
  std::vector<std::int32_t> sizes;  // a number for each length, or pair of lengths
  const auto max_length = static_cast<std::int32_t>(evaluator.dataset().length());
  for (std::int64_t i = 0; i < evaluator.sequences(); ++i) {
    const Batch& batch = sequences.emplace_back(read_sequence(evaluator, i));
    const std::int32_t source = batch.source_lengths.empty() ? 0 : batch.source_lengths[0];
    sizes.push_back(batch.lengths[0] + source * (max_length + 1));
  }
  const std::vector<std::int64_t> next = resampling_pairs(sizes, evaluator.config().train.seed);
  std::vector<InputPair> pairs;
  for (std::int64_t i = 0; i < evaluator.sequences() && std::ssize(pairs) < count; ++i) {
    const Batch& clean = sequences[static_cast<std::size_t>(i)];
    std::int64_t other = next[static_cast<std::size_t>(i)];
    while (other != i && !obstacle_of_labels(clean, sequences[static_cast<std::size_t>(other)]).empty())
      other = next[static_cast<std::size_t>(other)];
    if (other != i) pairs.push_back({i, other});
  }
  require<DataError>(
      !pairs.empty(),
      "patching: none of {} test sequences has a counterpart of the same length, with labels at the same positions and at least one that differs; use a larger test split, corrupt each by itself (--corruption=order), or give a pair of your own (--clean-text, --corrupted-text)",
      evaluator.sequences());
  return pairs;
}

void require_comparable(const Evaluator& evaluator, InputPair pair) {
  for (const std::int64_t index : {pair.clean, pair.corrupted})
    require<ShapeError>(index >= 0 && index < evaluator.sequences(),
                        "patching: there is no sequence {}; give 0 to {}", index, evaluator.sequences() - 1);
  const std::string reason =
      obstacle_of_labels(read_sequence(evaluator, pair.clean), read_sequence(evaluator, pair.corrupted));
  require<DataError>(reason.empty(), "patching: {}", reason);
}

PatchMeasure measure_of(std::span<const PairBatch> batches) {
  return std::ranges::all_of(batches, labels_differ) ? PatchMeasure::logit_difference
                                                     : PatchMeasure::log_probability;
}

PairRunner::PairRunner(Evaluator& evaluator, std::vector<PairBatch> batches, PatchMeasure measure)
    : evaluator_(evaluator), batches_(std::move(batches)), measure_(measure) {
  for (const PairBatch& batch : batches_) {
    first_.push_back(pairs_);
    pairs_ += batch.clean.sequences;
  }
}

template <class F>
void PairRunner::each_label(const PairBatch& batch, const F& f) const {
  const bool differ = measure_ == PatchMeasure::logit_difference;
  const std::vector<std::int32_t>& knowable = batch.clean.knowable_labels;
  for (std::size_t i = 0; i < batch.clean.rows.size(); ++i) {
    const std::int32_t row = batch.clean.rows[i];
    const auto label = static_cast<std::size_t>(row);
    const std::int32_t clean = batch.clean.labels[label], corrupted = batch.corrupted.labels[label];
    if (differ ? clean != corrupted : knowable.empty() || knowable[i] != kIgnore) f(row, clean, corrupted);
  }
}

Var PairRunner::logits(Tape& tape, std::size_t batch, Side side, Hooks* hooks) const {
  return model()(tape, model_input(input(batches_[batch], side)), {.hooks = hooks});
}

std::vector<double> PairRunner::run(Side side, const MakeHooks& make_hooks, std::int64_t* replaced) {
  std::vector<double> result(static_cast<std::size_t>(pairs_));
  std::atomic<std::int64_t> count = 0;
  each_batch([&](std::size_t i, Tape& tape) {
    const PairBatch& pairs = batches_[i];
    const std::unique_ptr<Replace> hooks = make_hooks(i);
    const MatrixView z = logits(tape, i, side, hooks.get()).value();
    if (hooks) count += hooks->replaced();
    const std::int64_t labels = std::ssize(pairs.clean.labels) / pairs.clean.sequences;
    double* differences = result.data() + first_[i];
    each_label(pairs, [&](std::int32_t row, std::int32_t clean, std::int32_t corrupted) {
      differences[row / labels] +=
          measure_ == PatchMeasure::log_probability
              ? -log_probabilities(z, row)[static_cast<std::size_t>(clean)]
              : static_cast<double>(z.row(row)[corrupted]) - static_cast<double>(z.row(row)[clean]);
    });
    for (std::int64_t b = 0; b < pairs.clean.sequences; ++b)
      if (!std::isfinite(differences[b])) require_finite(tape, model().config(), "patching");
  });
  if (replaced != nullptr) *replaced = count;
  return result;
}

std::vector<double> PairRunner::differences(Side side, const std::string& what, const MakeHooks& make_hooks) {
  std::int64_t replaced = 0;
  std::vector<double> result = run(side, make_hooks, &replaced);
  require<Error>(replaced > 0, "patching {}: nothing was replaced; the model has no such site", what);
  return result;
}

Tensor PairRunner::seed(std::size_t batch, ConstMatrixView logits) const {
  Tensor seed({logits.rows, logits.cols});
  each_label(batches_[batch], [&](std::int32_t row, std::int32_t clean, std::int32_t corrupted) {
    Real* const dy = seed.matrix().row(row);
    if (measure_ == PatchMeasure::log_probability) {
      std::ranges::transform(log_probabilities(logits, row), dy,
                             [](double log_p) { return static_cast<Real>(portable::exp(log_p)); });
      dy[clean] -= 1;
    } else {
      dy[corrupted] = 1;
      dy[clean] = -1;
    }
  });
  return seed;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
