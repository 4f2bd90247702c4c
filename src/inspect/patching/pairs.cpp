#include "inspect/patching/pairs.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "engine/model/finite.h"
#include "inspect/effects/measure_effects.h"
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

// Returns why two inputs cannot be compared; "" when they can.
std::string obstacle(const Batch& a, const Batch& b) {
  const auto lengths = [](const char* what, const auto& x, const auto& y) {
    return fmt::format("the inputs have {} {} and {}; choose two of equal length", what, x[0], y[0]);
  };
  if (a.lengths != b.lengths) return lengths("lengths", a.lengths, b.lengths);
  if (a.source_length > 0 && a.source_lengths != b.source_lengths)
    return lengths("sources of lengths", a.source_lengths, b.source_lengths);
  if (a.rows != b.rows) return "the inputs have labels at different positions; choose two with the same";
  if (a.labels == b.labels) return "the inputs have the same labels; choose two that differ";
  return "";
}

std::vector<PairBatch> read_pairs(const Evaluator& evaluator, std::span<const InputPair> pairs) {
  std::vector<PairBatch> batches;
  while (!pairs.empty()) {
    std::vector<std::int64_t> clean, corrupted;
    for (const InputPair& pair : pairs.first(std::min(kPairsPerBatch, pairs.size()))) {
      clean.push_back(pair.clean);
      corrupted.push_back(pair.corrupted);
    }
    pairs = pairs.subspan(clean.size());
    PairBatch& batch = batches.emplace_back();
    evaluator.dataset().fill(evaluator.split(), clean, batch.clean);
    evaluator.dataset().fill(evaluator.split(), corrupted, batch.corrupted);
  }
  return batches;
}

// Calls f(label, clean, corrupted) for every label that differs.
template <class F>
void each_difference(const PairBatch& batch, const F& f) {
  for (const std::int32_t row : batch.clean.rows) {
    const auto label = static_cast<std::size_t>(row);
    const std::int32_t clean = batch.clean.labels[label], corrupted = batch.corrupted.labels[label];
    if (clean != corrupted) f(row, clean, corrupted);
  }
}

}  // namespace

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
    while (other != i && !obstacle(clean, sequences[static_cast<std::size_t>(other)]).empty())
      other = next[static_cast<std::size_t>(other)];
    if (other != i) pairs.push_back({i, other});
  }
  require<DataError>(
      !pairs.empty(),
      "patching: none of {} test sequences has a counterpart of the same length, with labels at the same positions and at least one that differs; use a larger test split",
      evaluator.sequences());
  return pairs;
}

void require_comparable(const Evaluator& evaluator, InputPair pair) {
  for (const std::int64_t index : {pair.clean, pair.corrupted})
    require<ShapeError>(index >= 0 && index < evaluator.sequences(),
                        "patching: there is no sequence {}; give 0 to {}", index, evaluator.sequences() - 1);
  const std::string reason =
      obstacle(read_sequence(evaluator, pair.clean), read_sequence(evaluator, pair.corrupted));
  require<DataError>(reason.empty(), "patching: {}", reason);
}

PairRunner::PairRunner(Evaluator& evaluator, std::vector<PairBatch> batches)
    : evaluator_(evaluator), batches_(std::move(batches)) {
  for (const PairBatch& batch : batches_) {
    first_.push_back(pairs_);
    pairs_ += batch.clean.sequences;
  }
}

PairRunner::PairRunner(Evaluator& evaluator, std::span<const InputPair> pairs)
    : PairRunner(evaluator, read_pairs(evaluator, pairs)) {}

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
    each_difference(pairs, [&](std::int32_t row, std::int32_t clean, std::int32_t corrupted) {
      differences[row / labels] +=
          static_cast<double>(z.row(row)[corrupted]) - static_cast<double>(z.row(row)[clean]);
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

Tensor difference_seed(const PairBatch& batch, std::int64_t rows, std::int64_t vocabulary) {
  Tensor seed({rows, vocabulary});
  each_difference(batch, [&](std::int32_t row, std::int32_t clean, std::int32_t corrupted) {
    seed.matrix().row(row)[corrupted] = 1;
    seed.matrix().row(row)[clean] = -1;
  });
  return seed;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
