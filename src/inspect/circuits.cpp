#include "thimble/inspect/circuits.h"

#include "inspect/weights.h"
#include "thimble/inspect/attribution.h"
#include "thimble/kernels/gemm.h"
#include "thimble/train/cost.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

DoubleMatrix rows_of(const DoubleMatrix& m, std::int64_t first, std::int64_t count) {
  DoubleMatrix block(count, m.cols);
  std::copy_n(m.row(first), count * m.cols, block.values.begin());
  return block;
}

// The weights are distributions over the keys, so half of their mean and half of the identity is one too: the
// normalisation of rows in the definition changes nothing.
class RolloutWatcher : public Hooks {
 public:
  RolloutWatcher(const Transformer& model, std::int64_t length) : model_(model), length_(length) {}

  void begin(const Batch& batch) { batch_ = &batch; }

  void observe(std::string_view site, const Shape&, ConstMatrixView value) override {
    for (std::size_t l = 0; l < model_.layers().size(); ++l) {
      if (site == model_.layers()[l].self_attn.weights_site) apply_layer(l, value);
    }
  }

  DoubleMatrix finish() {
    for (double& x : sum_.values) x /= static_cast<double>(count_);
    return sum_;
  }

 private:
  void apply_layer(std::size_t layer, ConstMatrixView weights) {
    if (layer == 0) products_.assign(batch_->lengths.size(), {});
    for (std::size_t b = 0; b < products_.size(); ++b) {
      if (batch_->lengths[b] != length_) continue;
      Tensor step = mixed(weights, static_cast<std::int64_t>(b));
      if (layer == 0) {
        products_[b] = std::move(step);
      } else {
        Tensor next({length_, length_});
        kernels::gemm(next.matrix(), step.matrix(), kernels::Op::none, products_[b].matrix(),
                      kernels::Op::none, 1, 0);
        products_[b] = std::move(next);
      }
      if (layer + 1 == model_.layers().size()) add(products_[b]);
    }
  }

  // Half the mean over the heads of sequence b and half the identity, (T, T); weights (B H T, T).
  Tensor mixed(ConstMatrixView weights, std::int64_t b) const {
    const std::int64_t heads = model_.config().heads;
    Tensor out({length_, length_});
    for (std::int64_t i = 0; i < length_; ++i) {
      Real* to = out.matrix().row(i);
      for (std::int64_t h = 0; h < heads; ++h) {
        const Real* from = weights.row((b * heads + h) * length_ + i);
        for (std::int64_t j = 0; j < length_; ++j) to[j] += from[j] / static_cast<Real>(2 * heads);
      }
      to[i] += Real(0.5);
    }
    return out;
  }

  void add(const Tensor& rollout) {
    if (count_++ == 0) sum_ = DoubleMatrix(length_, length_);
    for (std::size_t i = 0; i < sum_.values.size(); ++i)
      sum_.values[i] += static_cast<double>(rollout.values()[i]);
  }

  const Transformer& model_;
  std::int64_t length_;
  const Batch* batch_ = nullptr;
  std::vector<Tensor> products_;  // by sequence
  DoubleMatrix sum_;
  std::int64_t count_ = 0;
};

// Rollout always, attribution where it is offered.
struct Watchers : Hooks {
  RolloutWatcher rollout;
  std::optional<AttributionWatcher> attribution;

  Watchers(const Transformer& model, std::int64_t length) : rollout(model, length) {
    if (attribution_obstacle(model.config()).empty()) attribution.emplace(model);
  }
  void begin(const Batch& batch) {
    rollout.begin(batch);
    if (attribution) attribution->begin(batch);
  }
  void observe(std::string_view site, const Shape& shape, ConstMatrixView value) override {
    rollout.observe(site, shape, value);
    if (attribution) attribution->observe(site, shape, value);
  }
};

}  // namespace

std::vector<HeadCircuits> head_circuits(const Transformer& model) {
  const ParameterStore& store = model.parameters();
  const std::int64_t channels = model.config().d_model, heads = model.config().heads, size = channels / heads;
  const DoubleMatrix embedding = in_double(store, "token_embedding.weight");
  std::optional<DoubleMatrix> unembedding;
  if (model.config().output.hidden == 0) unembedding = in_double(store, "output.weight");
  std::vector<HeadCircuits> circuits;
  for (const EncoderLayer& layer : model.layers()) {
    const DoubleMatrix in = in_double(store, layer.self_attn.in_proj_weight);
    const DoubleMatrix out = transposed(in_double(store, layer.self_attn.out_proj.weight));
    for (std::int64_t h = 0; h < heads; ++h) {
      const HeadWeights head{.query = rows_of(in, h * size, size),
                             .key = rows_of(in, channels + h * size, size),
                             .value = rows_of(in, 2 * channels + h * size, size),
                             .output = transposed(rows_of(out, h * size, size))};
      circuits.push_back(head_circuits(head, embedding, unembedding ? &*unembedding : nullptr));
    }
  }
  return circuits;
}

CircuitReport inspect_circuits(const Transformer& model, const Dataset& dataset, std::int64_t sequences) {
  Watchers watchers(model, dataset.length());
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  Batch batch;
  const std::int64_t at_once = micro_batch(dataset.length());
  const std::int64_t count =
      dataset.size(Split::test) > 0 ? std::min(sequences, dataset.size(Split::test)) : sequences;
  for (std::int64_t first = 0; first < count; first += at_once) {
    dataset.fill(Split::test, first, std::min(at_once, count - first), batch);
    watchers.begin(batch);
    tape.rewind();
    model(tape, batch.tokens, batch.length, batch.lengths, {.hooks = &watchers});
  }
  CircuitReport report{
      .heads = head_circuits(model), .attribution = {}, .rollout = watchers.rollout.finish()};
  if (watchers.attribution) {
    report.attribution = watchers.attribution->finish();
  } else {
    report.attribution.reason = attribution_obstacle(model.config());
  }
  return report;
}

}  // namespace thimble::inline THIMBLE_PRECISION
