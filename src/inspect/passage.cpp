#include "thimble/inspect/passage.h"

#include <algorithm>
#include <cmath>

#include "thimble/train/checkpoint.h"
#include "thimble/train/trainer.h"

namespace thimble::inline THIMBLE_PRECISION {

Passage run_input(const ModelSource& source, const std::vector<std::int32_t>& tokens);
void run_split(const ModelSource& source, Split split, std::int64_t count,
               const std::function<void(const Passage&)>& visit);

namespace {

// A trained model that reads one sequence at a time.
class Reader : private Hooks {
 public:
  explicit Reader(const ModelSource& source)
      : dataset_(make_dataset(source.config)),
        model_(source.config.model, dataset_.vocabulary(), dataset_.length()) {
    load_weights(source.weights, model_.parameters());
    tape_.bind(model_.parameters(), {});
  }

  const Dataset& dataset() const { return dataset_; }

  // tokens (length), the first `used` of them a sequence and the rest padding.
  Passage operator()(std::span<const std::int32_t> tokens, std::int32_t used) {
    passage_ = {};
    used_ = used;
    tape_.rewind();
    const Var logits =
        model_(tape_, tokens, std::ssize(tokens), std::span(&used, 1), {.hooks = static_cast<Hooks*>(this)});
    passage_.tokens.assign(tokens.begin(), tokens.begin() + used);
    answer(logits.value());
    return std::move(passage_);
  }

 private:
  void observe(std::string_view site, const Shape& shape, ConstMatrixView weights) override {
    if (!std::ranges::any_of(model_.layers(),
                             [&](const EncoderLayer& layer) { return layer.self_attn.weights_site == site; }))
      return;
    for (std::int64_t row = 0; row < weights.rows; ++row)
      if (row % shape.last() < used_)
        passage_.attention.insert(passage_.attention.end(), weights.row(row), weights.row(row) + used_);
  }

  void answer(ConstMatrixView logits) {
    const std::int64_t rows = model_.config().output.per == OutputPer::sequence ? 1 : std::int64_t{used_};
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::span<const Real> z(logits.row(row), static_cast<std::size_t>(logits.cols));
      const auto best = std::ranges::max_element(z);
      passage_.predictions.push_back(static_cast<std::int32_t>(best - z.begin()));
      double sum = 0;
      for (const Real x : z) sum += std::exp(static_cast<double>(x) - static_cast<double>(*best));
      for (const Real x : z) {
        passage_.logits.push_back(static_cast<double>(x));
        passage_.probabilities.push_back(std::exp(static_cast<double>(x) - static_cast<double>(*best)) / sum);
      }
    }
  }

  Dataset dataset_;
  Transformer model_;
  Tape tape_{Tape::Mode::inference};
  std::int32_t used_ = 0;
  Passage passage_;  // of the pass that runs
};

}  // namespace

Passage run_input(const ModelSource& source, const std::vector<std::int32_t>& tokens) {
  return Reader(source)(tokens, static_cast<std::int32_t>(tokens.size()));
}

void run_split(const ModelSource& source, Split split, std::int64_t count,
               const std::function<void(const Passage&)>& visit) {
  Reader reader(source);
  Batch batch;
  for (std::int64_t i = 0; i < count; ++i) {
    reader.dataset().fill(split, i, 1, batch);
    Passage passage = reader(batch.tokens, batch.lengths[0]);
    passage.targets.assign(batch.labels.begin(), batch.labels.begin() + std::ssize(passage.predictions));
    visit(passage);
  }
}

}  // namespace thimble::inline THIMBLE_PRECISION
