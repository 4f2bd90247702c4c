#include <algorithm>
#include <array>

#include "inspect/patching/measure_edges.h"
#include "inspect/patching/patching.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/patch.h"
#include "thimble/train/run.h"

namespace thimble {

namespace {

std::vector<InputPair> select_pairs(Evaluator& evaluator, std::int64_t pairs) {
  evaluator.select(Split::test, std::max(pairs, kCandidates));
  return draw_pairs(evaluator, pairs);
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
PatchingReport run_patching_pairs<Real>(const ModelSource& model, std::int64_t pairs) {
  Evaluator evaluator(model.config, *model.open());
  return patching(evaluator, select_pairs(evaluator, pairs));
}

template <>
EdgesReport run_edges<Real>(const ModelSource& model, std::int64_t pairs) {
  (void)EdgeGraph(model.config.model);  // throws before any work for a model without edges
  Evaluator evaluator(model.config, *model.open());
  const std::vector<InputPair> drawn = select_pairs(evaluator, pairs);
  std::vector<InputPair> halves[2];
  for (std::size_t i = 0; i < drawn.size(); ++i) halves[i % 2].push_back(drawn[i]);
  if (halves[1].empty()) halves[1] = halves[0];
  PairRunner all(evaluator, drawn), choosing(evaluator, halves[0]), measuring(evaluator, halves[1]);
  return measure_edges(all, choosing, measuring, model.config.train.seed);
}

}  // namespace thimble
