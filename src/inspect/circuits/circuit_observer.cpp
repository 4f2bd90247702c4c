#include "inspect/circuits/circuit_observer.h"

#include "thimble/engine/gemm.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

RolloutObserver::RolloutObserver(const Evaluator& evaluator)
    : layers_(evaluator.model().attention_layers()),
      length_(evaluator.dataset().length()),
      sum_(length_, length_) {}

void RolloutObserver::observe(Site site, const Shape&, ConstMatrixView value) {
  if (site.kind == SiteKind::attention_weights) apply_layer(static_cast<std::size_t>(site.layer), value);
}

void RolloutObserver::apply_layer(std::size_t layer, ConstMatrixView weights) {
  if (layer == 0) products_.assign(batch_->lengths.size(), {});
  for (std::size_t b = 0; b < products_.size(); ++b) {
    const std::int64_t length = batch_->lengths[b];
    Tensor step = layer_step(weights, static_cast<std::int64_t>(b), length);
    if (layer == 0) {
      products_[b] = std::move(step);
    } else {
      Tensor next({length, length});
      kernels::gemm(next.matrix(), step.matrix(), kernels::Op::none, products_[b].matrix(),
                    kernels::Op::none);
      products_[b] = std::move(next);
    }
    if (layer + 1 == layers_.size()) sum_.add(products_[b].values().data(), length, length, length);
  }
}

// Returns half the mean over the heads of a sequence of n positions plus half the identity, (n, n); weights
// (B H T, T).
Tensor RolloutObserver::layer_step(ConstMatrixView weights, std::int64_t sequence,
                                   std::int64_t length) const {
  const std::int64_t heads = layers_.front().heads;
  Tensor out({length, length});
  for (std::int64_t i = 0; i < length; ++i) {
    Real* to = out.matrix().row(i);
    for (std::int64_t h = 0; h < heads; ++h) {
      const Real* from = weights.row((sequence * heads + h) * length_ + i);
      for (std::int64_t j = 0; j < length; ++j) to[j] += from[j] / static_cast<Real>(2 * heads);
    }
    to[i] += Real(0.5);
  }
  return out;
}

CircuitObserver::CircuitObserver(const Evaluator& evaluator) : evaluator_(evaluator) {
  const Model& model = evaluator.model();
  if (model.config().kind == ModelKind::encoder) rollout_.emplace(evaluator);
  if (attribution_unavailable(model.config()).empty()) attribution_.emplace(model);
}

void CircuitObserver::begin(const Chunk& chunk) {
  if (rollout_) rollout_->begin(chunk);
  if (attribution_) attribution_->begin(chunk);
}

void CircuitObserver::observe(Site site, const Shape& shape, ConstMatrixView value) {
  if (rollout_) rollout_->observe(site, shape, value);
  if (attribution_) attribution_->observe(site, shape, value);
}

CircuitReport CircuitObserver::finish() const {
  CircuitReport report{.heads = head_circuits(evaluator_.model()),
                       .attribution = {},
                       .rollout = rollout_ ? rollout_->finish() : PositionMeans()};
  if (attribution_) {
    report.attribution = attribution_->finish();
  } else {
    report.attribution.reason = attribution_unavailable(evaluator_.model().config());
  }
  return report;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
