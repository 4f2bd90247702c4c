#include <algorithm>
#include <array>

#include "inspect/patching/corruption.h"
#include "inspect/patching/measure_edges.h"
#include "inspect/patching/patching.h"
#include "inspect/patching/text_pairs.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/patch.h"
#include "thimble/train/run.h"

namespace thimble {

namespace {

// Returns every `step`-th pair from `first` on.
template <class T>
std::vector<T> some_of(const std::vector<T>& pairs, std::size_t first, std::size_t step) {
  std::vector<T> some;
  for (std::size_t i = first; i < pairs.size(); i += step) some.push_back(pairs[i]);
  return some;
}

// The pairs of a choice, as batches.
class Pairs {
 public:
  Pairs(Evaluator& evaluator, const ModelSource& model, const PairChoice& choice) : evaluator_(evaluator) {
    if (!choice.texts.empty()) {
      of_texts_ = text_pairs(evaluator, model, choice.texts);
    } else {
      evaluator.select(Split::test, std::max(choice.pairs, kCandidates));
      examples_ = draw_examples(evaluator, choice.corruption, choice.pairs);
    }
  }

  // Returns every `step`-th pair from `first` on, or all if there is none.
  std::vector<PairBatch> batches(std::size_t first = 0, std::size_t step = 1) const {
    if (first >= std::max(of_texts_.size(), examples_.size())) first = 0;
    if (!of_texts_.empty()) return some_of(of_texts_, first, step);
    return batches_of(evaluator_.dataset(), some_of(examples_, first, step));
  }

 private:
  const Evaluator& evaluator_;
  std::vector<PairBatch> of_texts_;  // a pair each
  std::vector<ExamplePair> examples_;
};

std::string corruption_of(const PairChoice& choice) {
  return choice.texts.empty() ? choice.corruption : "own";
}

}  // namespace

template <>
PatchingReport run_patching<Real>(const ModelSource& model, std::int64_t clean, std::int64_t corrupted) {
  Evaluator evaluator(model.config, *model.open());
  const std::int64_t available = evaluator.dataset().size(Split::test);
  for (const std::int64_t index : {clean, corrupted})
    require<DataError>(index >= 0 && index < available, "patching: there is no sequence {}; give 0 to {}",
                       index, available - 1);
  evaluator.select(Split::test, std::max(clean, corrupted) + 1);
  return patching(evaluator, std::array{InputPair{clean, corrupted}});
}

template <>
PatchingReport run_patching_pairs<Real>(const ModelSource& model, const PairChoice& choice) {
  Evaluator evaluator(model.config, *model.open());
  PatchingReport report = patching(evaluator, Pairs(evaluator, model, choice).batches());
  report.inputs.corruption = corruption_of(choice);
  return report;
}

template <>
EdgesReport run_edges<Real>(const ModelSource& model, const PairChoice& choice) {
  (void)EdgeGraph(model.config.model);  // throws before any work for a model without edges
  Evaluator evaluator(model.config, *model.open());
  const Pairs pairs(evaluator, model, choice);
  const PatchMeasure measure = measure_of(pairs.batches());
  PairRunner all(evaluator, pairs.batches(), measure), choosing(evaluator, pairs.batches(0, 2), measure),
      measuring(evaluator, pairs.batches(1, 2), measure);
  EdgesReport report = measure_edges(all, choosing, measuring, model.config.train.seed);
  report.inputs.corruption = corruption_of(choice);
  return report;
}

}  // namespace thimble
