#include "thimble/inspect/effects/measure_effects.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "thimble/core/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

bool Ablation::replace(Site site, const Shape& shape, MatrixView value) {
  if (site.kind != SiteKind::head_output) return false;
  const std::int64_t width = layers_[static_cast<std::size_t>(site.layer)].d_value;
  bool replaced = false;
  for (const HeadId& head : heads_) {
    if (head.layer != site.layer) continue;
    const std::int64_t column = head.head * width;
    for (std::int64_t row = 0; row < value.rows; ++row) {
      const Real* from = substitute_(first_ + row / shape[1], site.position + row % shape[1]);
      Real* to = value.row(row) + column;
      from != nullptr ? std::copy_n(from + column, width, to) : std::fill_n(to, width, Real{0});
    }
    replaced = true;
  }
  return replaced;
}

std::vector<std::int64_t> resampling_pairs(std::span<const std::int32_t> lengths, std::uint64_t seed) {
  const Random random(seed, Stream::inspect);
  constexpr std::uint32_t kPairing = 1;  // the bootstrap uses 0
  std::map<std::int32_t, std::vector<std::int64_t>> groups;
  for (std::size_t i = 0; i < lengths.size(); ++i) groups[lengths[i]].push_back(static_cast<std::int64_t>(i));
  std::vector<std::int64_t> partner(lengths.size());
  for (auto& [length, group] : groups) {
    for (std::size_t i = group.size(); i > 1; --i) {
      const auto key = static_cast<std::uint64_t>(group[i - 1]);
      std::swap(group[i - 1], group[static_cast<std::size_t>(random.below(i, key, 0, kPairing))]);
    }
    for (std::size_t i = 0; i < group.size(); ++i)
      partner[static_cast<std::size_t>(group[i])] = group[(i + 1) % group.size()];
  }
  return partner;
}

namespace {

const Real* zeros(std::int64_t, std::int64_t) { return nullptr; }

// Stores |<z_h, dL/dz_h>| of every sequence in scores[layer * heads + head][sequence].
class Sensitivity : public ChunkHooks {
 public:
  Sensitivity(std::span<const AttentionLayer> layers, std::vector<std::vector<double>>& scores)
      : layers_(layers), scores_(scores), outputs_(layers.size()) {}

  void begin(const Chunk& chunk) override { chunk_ = &chunk; }
  void record(Site site, Var x) override {
    if (site.kind == SiteKind::head_output) outputs_[static_cast<std::size_t>(site.layer)].push_back(x);
  }
  void end() override {
    const std::int64_t heads = layers_.front().heads;
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      const std::size_t layer = i / static_cast<std::size_t>(heads);
      const std::int64_t width = layers_[layer].d_value;
      const std::int64_t column = static_cast<std::int64_t>(i) % heads * width;
      for (std::int64_t b = 0; b < chunk_->batch.sequences; ++b) {
        double sum = 0;
        for (const Var z : outputs_[layer]) {
          const std::int64_t time = z.shape()[1];
          sum += inner_product(z.value().row_block(b * time, time).column_block(column, width),
                               z.grad().row_block(b * time, time).column_block(column, width));
        }
        scores_[i][static_cast<std::size_t>(chunk_->first + b)] = std::abs(sum);
      }
    }
  }

 private:
  static double inner_product(ConstMatrixView a, ConstMatrixView b) {
    double sum = 0;
    for (std::int64_t r = 0; r < a.rows; ++r)
      sum = std::inner_product(a.row(r), a.row(r) + a.cols, b.row(r), sum, std::plus<>(), [](Real x, Real y) {
        return static_cast<double>(x) * static_cast<double>(y);
      });
    return sum;
  }

  std::span<const AttentionLayer> layers_;
  std::vector<std::vector<double>>& scores_;
  const Chunk* chunk_ = nullptr;
  std::vector<std::vector<Var>> outputs_;  // by layer; one for all positions, or one for each
};

// Returns the mean (T, columns) of rows (sequences, T, columns) over the sequences that have the position.
Tensor position_means(const Tensor& all, std::span<const std::int32_t> lengths) {
  const std::int64_t time = all.shape()[1], width = all.shape()[2];
  Tensor means({time, width});
  std::vector<double> sum(static_cast<std::size_t>(width));
  for (std::int64_t t = 0; t < time; ++t) {
    std::ranges::fill(sum, 0);
    double count = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (t >= lengths[i]) continue;
      const Real* row = all.matrix().row(static_cast<std::int64_t>(i) * time + t);
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += static_cast<double>(row[c]);
      ++count;
    }
    for (std::size_t c = 0; c < sum.size(); ++c)
      means.matrix().row(t)[c] = static_cast<Real>(sum[c] / std::max(1.0, count));
  }
  return means;
}

class Measurement {
 public:
  explicit Measurement(Evaluator& evaluator)
      : evaluator_(evaluator), layers_(evaluator.model().attention_layers()), baseline_(evaluator.run()) {
    for (const auto& [first, batch] : evaluator.chunks()) {
      lengths_.insert(lengths_.end(), batch.lengths.begin(), batch.lengths.end());
      source_lengths_.insert(source_lengths_.end(), batch.source_lengths.begin(), batch.source_lengths.end());
    }
    for (std::int64_t l = 0; l < std::ssize(layers_); ++l)
      for (std::int64_t h = 0; h < layers_[static_cast<std::size_t>(l)].heads; ++h) heads_.push_back({l, h});
  }

  EffectsReport finish() {
    EffectsReport report;
    report.baseline = baseline_;
    for (const HeadId& head : heads_) report.heads.emplace_back().id = head;
    pairs_ = resampling_pairs(sizes(), evaluator_.config().train.seed);
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      report.unpaired += pairs_[i] == static_cast<std::int64_t>(i);
    for (std::size_t l = 0; l < layers_.size(); ++l) ablate_layer(l);
    set_effects(report.heads);
    set_importance(report.heads);
    report.cumulative_ablation = remove_heads(report.heads);
    return report;
  }

 private:
  static constexpr std::size_t kKinds = 3;  // zero, mean, resample

  EvalResult ablated(std::span<const HeadId> heads, const Substitute& substitute,
                     const BlockInput* from = nullptr) {
    return evaluator_.run([&] { return std::make_unique<Ablation>(layers_, heads, substitute); },
                          Tape::Mode::inference, from);
  }

  // Returns a number for each sequence that is unique for its length and that of its source.
  std::vector<std::int32_t> sizes() const {
    std::vector<std::int32_t> sizes = lengths_;
    const auto longest = static_cast<std::int32_t>(evaluator_.dataset().length());
    for (std::size_t i = 0; i < source_lengths_.size(); ++i) sizes[i] += source_lengths_[i] * (longest + 1);
    return sizes;
  }

  // Appends the differences of each head and kind of ablation to differences_, in order.
  void ablate_layer(std::size_t number) {
    const AttentionLayer& layer = layers_[number];
    const Dataset& data = evaluator_.dataset();
    const std::int64_t time = layer.queries_source ? data.source_length() : data.length();
    Tensor all({evaluator_.sequences(), time, layer.heads * layer.d_value});
    Capture::Sites sites{{{SiteKind::head_output, static_cast<std::int32_t>(number)}, &all}};
    std::optional<BlockInput> input;
    if (evaluator_.model().blocks() > 0) {
      input = evaluator_.block_input(static_cast<std::size_t>(layer.block), evaluator_.sequences());
      sites.merge(evaluator_.input_sites(*input));
    }
    evaluator_.run([&] { return std::make_unique<Capture>(sites); });
    const BlockInput* from = input ? &*input : nullptr;
    const Tensor means = position_means(all, layer.queries_source ? source_lengths_ : lengths_);
    const Substitute mean = [&](std::int64_t, std::int64_t t) { return means.matrix().row(t); };
    const Substitute resample = [&](std::int64_t sequence, std::int64_t t) {
      return std::as_const(all).matrix().row(pairs_[static_cast<std::size_t>(sequence)] * time + t);
    };
    for (std::int64_t h = 0; h < layer.heads; ++h) {
      const HeadId head{static_cast<std::int64_t>(number), h};
      for (const Substitute& substitute : {Substitute(zeros), mean, resample})
        add_differences(ablated({&head, 1}, substitute, from));
    }
  }

  void add_differences(const EvalResult& changed) {
    std::vector<double>& losses = differences_.emplace_back();
    for (std::size_t i = 0; i < changed.per_sequence.size(); ++i)
      losses.push_back(changed.per_sequence[i].loss - baseline_.per_sequence[i].loss);
    std::vector<double>& corrects = differences_.emplace_back();
    for (std::size_t i = 0; i < changed.per_sequence.size(); ++i)
      corrects.push_back(
          static_cast<double>(changed.per_sequence[i].correct - baseline_.per_sequence[i].correct));
  }

  void set_effects(std::vector<HeadEffects>& heads) const {
    std::vector<double> labeled;
    for (const SequenceResult& sequence : baseline_.per_sequence)
      labeled.push_back(static_cast<double>(sequence.labeled));
    const double count = std::max(1.0, std::reduce(labeled.begin(), labeled.end()));
    const std::vector<Interval> intervals = bootstrap(differences_, labeled, evaluator_.config().train.seed);
    const auto mean = [&](std::size_t k) {
      return std::accumulate(differences_[k].begin(), differences_[k].end(), 0.0) / count;
    };
    for (std::size_t i = 0; i < heads.size(); ++i) {
      std::size_t k = 2 * kKinds * i;  // loss, then accuracy
      for (Effect* effect : {&heads[i].zero, &heads[i].mean, &heads[i].resample}) {
        *effect = {mean(k), mean(k + 1), intervals[k], intervals[k + 1]};
        k += 2;
      }
    }
  }

  void set_importance(std::vector<HeadEffects>& heads) {
    const auto n = static_cast<std::size_t>(evaluator_.sequences());
    std::vector<std::vector<double>> scores(heads.size(), std::vector<double>(n));
    evaluator_.run([&] { return std::make_unique<Sensitivity>(layers_, scores); }, Tape::Mode::training);
    std::vector<double> squares(layers_.size());
    for (std::size_t i = 0; i < heads.size(); ++i) {
      const double raw = std::accumulate(scores[i].begin(), scores[i].end(), 0.0) / static_cast<double>(n);
      require<NumericError>(
          std::isfinite(raw),
          "inspect: the gradient importance of {} head {} is {}; the weights are too large, use an earlier "
          "checkpoint",
          layers_[static_cast<std::size_t>(heads[i].id.layer)].title(), heads[i].id.head, std::abs(raw));
      heads[i].importance.raw = raw;
      squares[static_cast<std::size_t>(heads[i].id.layer)] += raw * raw;
    }
    for (HeadEffects& head : heads) {
      const double norm = std::sqrt(squares[static_cast<std::size_t>(head.id.layer)]);
      head.importance.normalized = norm > 0 ? head.importance.raw / norm : 0;
    }
  }

  std::vector<RemovalStep> remove_heads(std::vector<HeadEffects> heads) {
    std::ranges::stable_sort(heads, {}, [](const HeadEffects& h) { return h.importance.normalized; });
    std::vector<HeadId> removed;
    std::vector<std::size_t> blocks;
    for (const HeadEffects& head : heads) {
      removed.push_back(head.id);
      blocks.push_back(static_cast<std::size_t>(layers_[static_cast<std::size_t>(head.id.layer)].block));
    }
    const Substitute nothing = zeros;
    const std::vector<EvalResult> results = evaluator_.run_series(blocks, [&](std::size_t k) {
      return std::make_unique<Ablation>(layers_, std::span(removed).first(k + 1), nothing);
    });
    std::vector<RemovalStep> steps{{.loss = baseline_.loss, .accuracy = baseline_.accuracy}};
    for (std::size_t k = 0; k < results.size(); ++k)
      steps.push_back({static_cast<std::int64_t>(k + 1), removed[k], results[k].loss, results[k].accuracy});
    return steps;
  }

  Evaluator& evaluator_;
  const std::vector<AttentionLayer>& layers_;
  EvalResult baseline_;
  std::vector<std::int32_t> lengths_, source_lengths_;  // by sequence
  std::vector<std::int64_t> pairs_;
  std::vector<HeadId> heads_;
  // By head and kind of ablation: the differences of losses, then of correct positions, by sequence.
  std::vector<std::vector<double>> differences_;
};

}  // namespace

EffectsReport measure_effects(Evaluator& evaluator) { return Measurement(evaluator).finish(); }

double effect_passes(const Evaluator& evaluator) {
  double passes = 1 + Evaluator::pass_cost(Tape::Mode::training);  // baseline and gradients
  const std::vector<AttentionLayer>& layers = evaluator.model().attention_layers();
  for (const AttentionLayer& layer : layers) {
    const auto heads = static_cast<double>(layer.heads);
    constexpr double kKinds = 3;  // of ablation
    passes += 1 + (kKinds + 1) * heads * evaluator.share_from(static_cast<std::size_t>(layer.block));
  }
  return passes;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
