#include "inspect/effects/measure_effects.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "inspect/effects/effect_scale.h"
#include "inspect/effects/head_names.h"
#include "thimble/engine/error.h"
#include "thimble/engine/random.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

std::vector<std::int64_t> resampling_pairs(std::span<const std::int32_t> lengths, std::uint64_t seed) {
  const Random random(seed, Stream::inspect);
  constexpr std::uint32_t kPairing = 1;
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

namespace {

// Stores |<z_h, dL/dz_h>| of every sequence in scores[layer * heads + head][sequence].
class Sensitivity : public ChunkHooks {
 public:
  Sensitivity(std::span<const AttentionLayer> layers, std::vector<std::vector<double>>& scores)
      : layers_(layers), scores_(scores), outputs_(layers.size()) {}

  void begin(const Chunk& chunk) override { chunk_ = &chunk; }
  bool may_replace(Site) const override { return false; }
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

class Measurement {
 public:
  explicit Measurement(Evaluator& evaluator)
      : evaluator_(evaluator),
        layers_(evaluator.model().attention_layers()),
        bounds_(bound_answers(evaluator)),
        baseline_(evaluator.run()) {
    for (const auto& [first, batch] : evaluator.chunks()) {
      lengths_.insert(lengths_.end(), batch.lengths.begin(), batch.lengths.end());
      source_lengths_.insert(source_lengths_.end(), batch.source_lengths.begin(), batch.source_lengths.end());
    }
    for (std::int64_t l = 0; l < std::ssize(layers_); ++l)
      for (std::int64_t h = 0; h < layers_[static_cast<std::size_t>(l)].heads; ++h) heads_.push_back({l, h});
    pairs_ = resampling_pairs(sizes(), evaluator.config().train.seed);
  }

  EffectsReport finish(double smallest_effect) {
    EffectsReport report;
    report.baseline = baseline_;
    report.scale = measure_scale(evaluator_, baseline_, bounds_, smallest_effect);
    report.unpaired = unpaired();
    for (const HeadId& head : heads_) report.heads.emplace_back().id = head;
    for (std::int64_t l = 0; l < std::ssize(layers_); ++l) ablate_layer(l, report.heads);
    set_importance(report.heads);
    report.cumulative_ablation = remove_heads(report.heads);
    return report;
  }

  AblationReport ablate(std::span<const HeadId> heads) {
    AblationReport report;
    report.baseline = baseline_;
    report.heads.assign(heads.begin(), heads.end());
    report.unpaired = unpaired();
    std::set<std::int64_t> layers;
    for (const HeadId& head : heads) {
      report.names.push_back(head_name(layers_, head));
      layers.insert(head.layer);
    }
    const std::vector<HeadOutputs> outputs = capture(layers);
    Effect* effects[] = {&report.zero, &report.mean, &report.resample};
    measure(heads, outputs, nullptr, effects);
    return report;
  }

 private:
  // The outputs of a layer's heads on every sequence, (sequences, T, H Dv), and their means, (T, H Dv).
  struct HeadOutputs {
    Tensor all, means;
  };

  // Captures the outputs of the heads of some layers, and what else the sites name. Returns them by layer.
  std::vector<HeadOutputs> capture(const std::set<std::int64_t>& layers, Capture::Sites sites = {}) const {
    const Dataset& data = evaluator_.dataset();
    std::vector<HeadOutputs> outputs(layers_.size());
    for (const std::int64_t l : layers) {
      const AttentionLayer& layer = layers_[static_cast<std::size_t>(l)];
      HeadOutputs& of_layer = outputs[static_cast<std::size_t>(l)];
      const std::int64_t time = layer.queries_source ? data.source_length() : data.length();
      of_layer.all = Tensor({evaluator_.sequences(), time, layer.heads * layer.d_value});
      sites.emplace(Site{SiteKind::head_output, static_cast<std::int32_t>(l)}, &of_layer.all);
    }
    evaluator_.run([&] { return std::make_unique<Capture>(sites); });
    for (const std::int64_t l : layers) {
      HeadOutputs& of_layer = outputs[static_cast<std::size_t>(l)];
      const bool of_source = layers_[static_cast<std::size_t>(l)].queries_source;
      of_layer.means = position_means(of_layer.all, of_source ? source_lengths_ : lengths_);
    }
    return outputs;
  }

  static constexpr std::size_t kResample = 2;

  // Sets the effects of zero, mean and resample ablation of some heads together, in passes from a block on if given.
  void measure(std::span<const HeadId> heads, const std::vector<HeadOutputs>& outputs, const BlockInput* from,
               std::span<Effect* const> effects) {
    const Substitute kinds[] = {
        {},
        [&](const HeadRow& own) {
          return outputs[static_cast<std::size_t>(own.layer)].means.matrix().row(own.position);
        },
        [&](const HeadRow& own) {
          const Tensor& all = outputs[static_cast<std::size_t>(own.layer)].all;
          const std::int64_t pair = pairs_[static_cast<std::size_t>(own.sequence)];
          return all.matrix().row(pair * all.shape()[1] + own.position);
        }};
    for (std::size_t kind = 0; kind < std::size(kinds); ++kind)
      *effects[kind] =
          effect_of(kind, evaluator_.run([&] { return replace_heads(layers_, heads, kinds[kind]); },
                                         Tape::Mode::inference, from));
  }

  bool is_paired(std::size_t sequence) const {
    return pairs_[sequence] != static_cast<std::int64_t>(sequence);
  }

  std::int64_t unpaired() const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < pairs_.size(); ++i) count += is_paired(i) ? 0 : 1;
    return count;
  }

  // Returns the effect of an ablation with the substitute `kind`, on the sequences that have one.
  Effect effect_of(std::size_t kind, const EvalResult& result) const {
    if (kind != kResample) return effect_between(baseline_.per_sequence, result.per_sequence, bounds_);
    std::vector<SequenceResult> before, after;
    AnswerBounds bounds = bounds_;
    bounds.draws.clear();
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (!is_paired(i)) continue;
      before.push_back(baseline_.per_sequence[i]);
      after.push_back(result.per_sequence[i]);
      if (!bounds_.draws.empty()) bounds.draws.push_back(bounds_.draws[i]);
    }
    return effect_between(before, after, bounds);
  }

  // Returns a number for each sequence that is unique for its length and that of its source.
  std::vector<std::int32_t> sizes() const {
    std::vector<std::int32_t> sizes = lengths_;
    const auto longest = static_cast<std::int32_t>(evaluator_.dataset().length());
    for (std::size_t i = 0; i < source_lengths_.size(); ++i) sizes[i] += source_lengths_[i] * (longest + 1);
    return sizes;
  }

  void ablate_layer(std::int64_t number, std::vector<HeadEffects>& heads) {
    Capture::Sites sites;
    std::optional<BlockInput> input;
    if (evaluator_.model().blocks() > 0) {
      const std::int64_t block = layers_[static_cast<std::size_t>(number)].block;
      input = evaluator_.block_input(static_cast<std::size_t>(block), evaluator_.sequences());
      sites = evaluator_.input_sites(*input);
    }
    const std::vector<HeadOutputs> outputs = capture({number}, std::move(sites));
    for (HeadEffects& head : heads) {
      if (head.id.layer != number) continue;
      Effect* effects[] = {&head.zero, &head.mean, &head.resample};
      measure(std::span(&head.id, 1), outputs, input ? &*input : nullptr, effects);
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
          "inspect: the gradient importance of head {} is {}; the weights are too large, use an earlier checkpoint",
          head_name(layers_, heads[i].id), std::abs(raw));
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
    std::vector<HeadId> order;
    for (const HeadEffects& head : heads) order.push_back(head.id);
    return removal_steps(evaluator_, order, baseline_);
  }

  Evaluator& evaluator_;
  const std::vector<AttentionLayer>& layers_;
  AnswerBounds bounds_;
  EvalResult baseline_;
  std::vector<std::int32_t> lengths_, source_lengths_;  // by sequence
  std::vector<std::int64_t> pairs_;
  std::vector<HeadId> heads_;
};

}  // namespace

std::vector<RemovalStep> removal_steps(Evaluator& evaluator, std::span<const HeadId> order,
                                       const EvalResult& baseline) {
  const std::vector<AttentionLayer>& layers = evaluator.model().attention_layers();
  std::vector<std::size_t> blocks;
  for (const HeadId& head : order)
    blocks.push_back(static_cast<std::size_t>(layers[static_cast<std::size_t>(head.layer)].block));
  const std::vector<EvalResult> results =
      evaluator.run_series(blocks, [&](std::size_t k) { return replace_heads(layers, order.first(k + 1)); });
  std::vector<RemovalStep> steps{{.loss = baseline.loss, .accuracy = baseline.accuracy}};
  for (std::size_t k = 0; k < results.size(); ++k)
    steps.push_back({static_cast<std::int64_t>(k + 1), order[k], results[k].loss, results[k].accuracy});
  return steps;
}

EffectsReport measure_effects(Evaluator& evaluator, double smallest_effect) {
  return Measurement(evaluator).finish(smallest_effect);
}

AblationReport measure_ablation(Evaluator& evaluator, std::span<const HeadId> heads) {
  return Measurement(evaluator).ablate(heads);
}

double effect_passes(const Evaluator& evaluator) {
  double passes = 1 + kRoundingPasses + kUntrainedModels +
                  Evaluator::pass_cost(Tape::Mode::training);  // with the baseline
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
