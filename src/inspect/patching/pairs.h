// Pairs of inputs for activation and path patching: a clean and a corrupted one of the same length, with labels
// at the same positions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thimble/inspect/patching_report.h"
#include "train/step/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The indices of two sequences of a split.
struct InputPair {
  std::int64_t clean, corrupted;
};

// Draws at most `count` pairs from the sequences that the evaluator has selected, in the order of their clean
// inputs. The corrupted input is the next one of the same length in a random order that depends on the seed
// (resampling_pairs); it is drawn again while labels are at other positions or all equal. A sequence without a
// counterpart is in no pair. Throws DataError when no sequence has one.
std::vector<InputPair> draw_pairs(const Evaluator& evaluator, std::int64_t count);

// Throws ShapeError when the split of the evaluator has no such sequences, and DataError when lengths or the
// positions of labels differ, or when all labels are equal.
void require_comparable(const Evaluator& evaluator, InputPair pair);
// Returns what is wrong with a batch of one sequence and a corrupted one: "the inputs have lengths 3 and 4; ..."; "" if nothing
// is. Their labels may be equal.
std::string obstacle(const Batch& clean, const Batch& corrupted);

// A pair as the task's data have it.
struct ExamplePair {
  Example clean, corrupted;
};

// Returns pairs of sequences of the evaluator's split as examples.
std::vector<ExamplePair> examples_of(const Evaluator& evaluator, std::span<const InputPair> pairs);

// Some pairs, as batches; sequence b of the one is paired with sequence b of the other.
struct PairBatch {
  Batch clean, corrupted;
};

std::vector<PairBatch> batches_of(const Dataset& dataset, std::span<const ExamplePair> pairs);

// Returns the logit difference if the labels of every pair differ, or else the log-probability.
PatchMeasure measure_of(std::span<const PairBatch> batches);

// A model and pairs of inputs, and passes over one side of all pairs.
class PairRunner {
 public:
  enum class Side { clean, corrupted };

  // The evaluator, whose sequences the pairs are, must outlive the runner.
  PairRunner(Evaluator& evaluator, std::vector<PairBatch> batches,
             PatchMeasure measure = PatchMeasure::logit_difference);
  PairRunner(Evaluator& evaluator, std::span<const InputPair> pairs)
      : PairRunner(evaluator, batches_of(evaluator.dataset(), examples_of(evaluator, pairs))) {}

  const Model& model() const { return evaluator_.model(); }
  PatchMeasure measure() const { return measure_; }
  const std::vector<PairBatch>& batches() const { return batches_; }
  std::int64_t pairs() const { return pairs_; }
  static const Batch& input(const PairBatch& batch, Side side) {
    return side == Side::clean ? batch.clean : batch.corrupted;
  }

  // Calls f(i, tape) for every batch i, as Evaluator::each does.
  void each_batch(const Evaluator::Work& f, Tape::Mode mode = Tape::Mode::inference) {
    evaluator_.each(batches_.size(), f, mode);
  }
  // Returns the logits of a pass over that side of one batch.
  Var logits(Tape& tape, std::size_t batch, Side side, Hooks* hooks) const;

  // Returns D of each pair, see PatchMeasure, in a pass over that side. Hooks are made for each batch, and
  // `what` names their work. Throws Error when no hook replaces anything, and NumericError when D is not
  // finite.
  using MakeHooks = std::function<std::unique_ptr<Replace>(std::size_t batch)>;
  std::vector<double> differences(Side side) {
    return run(side, [](std::size_t) { return nullptr; });
  }
  std::vector<double> differences(Side side, const std::string& what, const MakeHooks& make_hooks);

  // Returns dD / dlogits of the sum of D over a batch, (R, V) as the logits.
  Tensor seed(std::size_t batch, ConstMatrixView logits) const;

 private:
  // Calls f(row, clean label, corrupted label) for every label that the measure counts.
  template <class F>
  void each_label(const PairBatch& batch, const F& f) const;
  std::vector<double> run(Side side, const MakeHooks& make_hooks, std::int64_t* replaced = nullptr);

  Evaluator& evaluator_;
  std::vector<PairBatch> batches_;
  std::vector<std::int64_t> first_;  // the first pair of each batch
  std::int64_t pairs_ = 0;
  PatchMeasure measure_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
