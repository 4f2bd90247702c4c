#include "train/step/references.h"

#include <algorithm>
#include <array>

#include "engine/core/portable_math.h"
#include "train/data/corpus/corpus.h"
#include "train/files/progress.h"

namespace thimble {

namespace {

constexpr std::array<int, 3> kOrders{1, 2, 5};

const Corpus* corpus_of(const Source* source) { return dynamic_cast<const Corpus*>(source); }

}  // namespace

ReferenceModels::ReferenceModels(const Dataset& data) : data_(data) {
  const Corpus* text = corpus_of(&data.source());
  if (text == nullptr || text->splits()[0] == 0) return;
  ProgressCounter progress("counting n-grams", static_cast<double>(kOrders.size()));
  const std::vector<std::int32_t> tokens = text->training_tokens(kMaxCounted);
  counted_ = std::ranges::count_if(tokens, [](std::int32_t token) { return token >= 0; });
  of_ = text->training_count();
  for (const int order : kOrders) {
    models_.emplace_back(tokens, data.vocabulary(), order);
    progress.advance();
  }
}

std::optional<References> ReferenceModels::losses(Split split, std::int64_t count) const {
  if (models_.empty() || count == 0) return std::nullopt;
  ProgressCounter progress("comparing with n-grams", static_cast<double>(count));
  std::array<double, kOrders.size()> sums{};
  double labels = 0;
  Example e;
  for (std::int64_t i = 0; i < count; ++i) {
    data_.example(split, i, e);
    for (std::size_t t = 0; t < e.target.size(); ++t) {
      if (e.target[t] == kIgnore) continue;
      const std::span<const std::int32_t> context(e.input.data(), t + 1);
      for (std::size_t m = 0; m < models_.size(); ++m)
        sums[m] -= portable::log(models_[m].probability(context, e.target[t]));
      ++labels;
    }
    progress.advance();
  }
  return References{.unigram = sums[0] / labels,
                    .bigram = sums[1] / labels,
                    .five_gram = sums[2] / labels,
                    .counted = counted_,
                    .of = of_};
}

}  // namespace thimble
