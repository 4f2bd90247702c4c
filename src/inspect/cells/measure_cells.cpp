#include "inspect/cells/measure_cells.h"

#include <algorithm>

#include "inspect/effects/head_names.h"
#include "inspect/effects/measure_effects.h"
#include "inspect/scores/score_observer.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

std::vector<ScoreTargets::Cell> cells_of(const FoundPattern& pattern, const ScoreTargets& targets,
                                         std::span<const std::string_view> kinds) {
  const auto* const content = std::ranges::find(ScoreTargets::kNames, pattern.score);
  if (content != std::end(ScoreTargets::kNames)) {
    auto index = content - std::begin(ScoreTargets::kNames);
    if (!pattern.kind.empty())
      index = ScoreTargets::kScores + (std::ranges::find(kinds, pattern.kind) - kinds.begin());
    return targets.sums()[static_cast<std::size_t>(index)].cells;
  }
  std::vector<ScoreTargets::Cell> cells;
  for (std::int64_t i = 0; i < targets.queries(); ++i) {
    std::int64_t first = 0, last = targets.visible(i) - 1;  // of a uniform head
    if (pattern.score == "previous_token") first = last = i - 1;
    if (pattern.score == "next_token") first = last = i + 1;
    if (pattern.score == "self") first = last = i;
    if (pattern.score == "mirror") first = last = targets.keys() - 1 - i;
    if (pattern.score == "offset") first = last = i + *pattern.at;
    if (pattern.score == "absolute_position") first = last = *pattern.at;
    for (std::int64_t j = std::max<std::int64_t>(first, 0); j <= last && j < targets.visible(i); ++j)
      cells.push_back({i, j});
  }
  return cells;
}

namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// The cells of a sequence, a bit for each query and key.
struct CellMap {
  std::int64_t keys;
  std::vector<bool> cells;
};

// Returns hooks of a pass, which they own.
template <class... Hooks>
std::unique_ptr<ChunkHooks> combined(std::unique_ptr<Hooks>... hooks) {
  std::vector<std::unique_ptr<ChunkHooks>> all;
  (all.push_back(std::move(hooks)), ...);
  return std::make_unique<Combined>(std::move(all));
}

// Returns the head without which another one is worth most, if that is more than alone.
std::vector<HeadId> find_partner(const HeadEffects& head, const HeadVerdict& verdict,
                                 const JointReport& joint) {
  std::vector<HeadId> partner;
  double most = verdict.in_loss ? head.zero.capped_loss.mean : -head.zero.accuracy.mean;
  for (const PairEffect& pair : joint.pairs)
    for (const std::size_t k : {0, 1}) {
      const double worth = (verdict.in_loss ? pair.worth_loss : pair.worth_accuracy)[k];
      if (pair.heads[k] != head.id || worth <= most || verdict.verdict == Verdict::harmful) continue;
      most = worth;
      partner = {pair.heads[1 - k]};
    }
  return partner;
}

// The heads of a layer, in a model without some heads.
class LayerCells {
 public:
  LayerCells(Evaluator& evaluator, std::int64_t layer, std::vector<HeadId> without)
      : evaluator_(evaluator),
        layers_(evaluator.model().attention_layers()),
        layer_(layers_[static_cast<std::size_t>(layer)]),
        outputs_{SiteKind::head_output, static_cast<std::int32_t>(layer)},
        without_(std::move(without)) {
    const std::int64_t time =
        layer_.queries_source ? evaluator.dataset().source_length() : evaluator.dataset().length();
    all_ = Tensor({evaluator.sequences(), time, layer_.heads * layer_.d_value});
    Capture::Sites sites;
    if (evaluator.model().blocks() > 0) {
      input_ = evaluator.block_input(static_cast<std::size_t>(layer_.block), evaluator.sequences());
      sites = evaluator.input_sites(*input_);
    }
    sites.emplace(outputs_, &all_);
    for (const auto& [first, batch] : evaluator.chunks()) {
      const auto& lengths = layer_.queries_source ? batch.source_lengths : batch.lengths;
      lengths_.insert(lengths_.end(), lengths.begin(), lengths.end());
    }
    whole_ = evaluator.run([&] { return combined(ablated(), std::make_unique<Capture>(sites)); });
    means_ = position_means(all_, lengths_);
  }

  // Returns the test of a head's pattern, and sets the result with its cells alone.
  CellEffect test(std::int64_t head, const FoundPattern& pattern, const HeadVerdict& verdict,
                  const EffectScale& scale, EvalResult& alone) {
    const std::vector<HeadId> id{{outputs_.layer, head}};
    const EvalResult mean = run([&] {
      return combined(ablated(), replace_heads(layers_, id, [&](const HeadRow& own) {
                        return std::as_const(means_).matrix().row(own.position);
                      }));
    });
    const std::vector<CellMap> cells = all_cells(pattern);
    const bool is_uniform = pattern.score == "entropy";
    const Capture::Sites sites{{outputs_, &all_}};
    run([&] {
      return combined(ablated(), kept(head, cells, is_uniform, nullptr), std::make_unique<Capture>(sites));
    });
    Tensor rest = position_means(all_, lengths_);
    std::transform(means_.data(), means_.data() + rest.shape().elements(), rest.data(), rest.data(),
                   std::minus<>());
    alone = run([&] { return combined(ablated(), kept(head, cells, is_uniform, &rest)); });
    CellEffect effect = compare_cells(whole_, mean, alone, verdict, scale);
    effect.pattern = pattern;
    for (const HeadId& other : without_) effect.without.push_back(head_name(layers_, other));
    return effect;
  }

 private:
  template <class F>
  EvalResult run(const F& make_hooks) {
    return evaluator_.run(make_hooks, Tape::Mode::inference, input_ ? &*input_ : nullptr);
  }

  std::unique_ptr<Replace> ablated() const { return replace_heads(layers_, without_); }

  std::vector<CellMap> all_cells(const FoundPattern& pattern) const {
    std::vector<CellMap> cells;
    ScoreObserver targets(evaluator_);
    for (const Chunk& chunk : evaluator_.chunks()) {
      targets.begin(chunk);
      for (const ScoreTargets& one : targets.targets_of(layer_)) {
        cells.push_back({one.keys(), std::vector<bool>(at(one.queries() * one.keys()))});
        for (const auto& [query, key] : cells_of(pattern, one, evaluator_.dataset().source().kinds()))
          cells.back().cells[at(query * one.keys() + key)] = true;
      }
    }
    return cells;
  }

  // Returns hooks that set a head's weights to 0 but on the cells of each sequence, or all of these to the same, and add
  // the mean of the rest, unless null, to what comes of it.
  std::unique_ptr<Replace> kept(std::int64_t head, const std::vector<CellMap>& cells, bool is_uniform,
                                const Tensor* rest) const {
    const Site weights{SiteKind::attention_weights, outputs_.layer};
    const auto is_site = [=, this](Site site) { return site.start() == weights || site.start() == outputs_; };
    const auto source = [=, this, &cells](std::int64_t first, Site site, const Shape& shape,
                                          MatrixView value) {
      if (site.start() == weights) {
        for (std::int64_t b = 0; b < shape[0]; ++b)
          keep(cells[at(first + b)], is_uniform, site.position,
               value.row_block((b * shape[1] + head) * shape[2], shape[2]));
      } else if (rest != nullptr) {
        for (std::int64_t row = 0; row < value.rows; ++row) {
          const Real* const from = rest->matrix().row(site.position + row % shape[1]) + head * layer_.d_value;
          Real* const to = value.row(row) + head * layer_.d_value;
          std::transform(from, from + layer_.d_value, to, to, std::plus<>());
        }
      }
      return value.rows;
    };
    return std::make_unique<Replace>(is_site, source);
  }

  // Keeps the weights of a sequence's queries from a position on, on its cells.
  static void keep(const CellMap& map, bool is_uniform, std::int64_t position, MatrixView weights) {
    for (std::int64_t row = 0; row < weights.rows; ++row) {
      const auto is_cell = [&](std::int64_t key) {
        const std::size_t cell = at((position + row) * map.keys + key);
        return key < map.keys && cell < map.cells.size() && map.cells[cell];
      };
      std::int64_t count = 0;
      for (std::int64_t key = 0; key < weights.cols; ++key) count += is_cell(key) ? 1 : 0;
      for (std::int64_t key = 0; key < weights.cols; ++key) {
        Real& weight = weights.row(row)[key];
        weight = !is_cell(key) ? 0 : is_uniform ? 1 / static_cast<Real>(count) : weight;
      }
    }
  }

  Evaluator& evaluator_;
  const std::vector<AttentionLayer>& layers_;
  const AttentionLayer& layer_;
  const Site outputs_;
  const std::vector<HeadId> without_;
  std::vector<std::int32_t> lengths_;  // of the layer's queries
  std::optional<BlockInput> input_;    // of the layer's block
  EvalResult whole_;
  Tensor all_,
      means_;  // outputs of the layer's heads (sequences, T, H Dv), and the means (T, H Dv) in the whole model
};

// Returns the test of a head's pattern, or that of the kind that it has and that keeps more than each other one.
CellEffect choose(LayerCells& cells, std::int64_t head, std::span<const FoundPattern> patterns,
                  const HeadVerdict& verdict, const EffectScale& scale) {
  std::vector<EvalResult> alone(patterns.size());
  std::vector<CellEffect> tests;
  for (const FoundPattern& pattern : patterns)
    tests.push_back(cells.test(head, pattern, verdict, scale, alone[tests.size()]));
  const auto keeps_more = [&](std::size_t k, std::size_t other) {
    const BoundedChanges more =
        bounded_changes(alone[other].per_sequence, alone[k].per_sequence, scale.bounds);
    const BoundedMean& change = verdict.in_loss ? more.capped_loss : more.accuracy;
    return verdict.is_rise() ? change.is_above(0) : change.is_below(0);
  };
  for (std::size_t k = 1; k < tests.size(); ++k) {
    bool most = tests[k].carried == Carried::yes && !patterns[k].is_rival;
    for (std::size_t other = 1; other < tests.size(); ++other) most &= other == k || keeps_more(k, other);
    if (most) return tests[k];
  }
  return tests[0];
}

}  // namespace

std::vector<std::optional<CellEffect>> measure_cells(Evaluator& evaluator,
                                                     std::span<const std::vector<FoundPattern>> patterns,
                                                     std::span<const HeadVerdict> verdicts,
                                                     const EffectsReport& effects, const JointReport& joint) {
  std::vector<std::optional<CellEffect>> out(patterns.size());
  std::optional<LayerCells> whole;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const auto& [layer, head] = effects.heads[i].id;
    const Verdict verdict = verdicts[i].verdict;
    if (head == 0) whole.reset();
    const bool changes_something =
        verdict == Verdict::important || verdict == Verdict::harmful || verdict == Verdict::minor;
    std::vector<HeadId> without = verdicts[i].group;  // of a backup
    if (patterns[i].empty() || (!changes_something && without.empty())) continue;
    if (changes_something) {
      if (!whole) whole.emplace(evaluator, layer, std::vector<HeadId>());
      out[i] = choose(*whole, head, patterns[i], verdicts[i], effects.scale);
      if (out[i]->carried == Carried::yes || out[i]->carried == Carried::constant) continue;
      without = find_partner(effects.heads[i], verdicts[i], joint);
      if (without.empty()) continue;
    }
    LayerCells others(evaluator, layer, without);
    const CellEffect again = choose(others, head, patterns[i], verdicts[i], effects.scale);
    if (!out[i] || again.carried == Carried::yes) out[i] = again;
  }
  return out;
}

double cell_passes(const Evaluator& evaluator) {
  double passes = 0;
  for (const AttentionLayer& layer : evaluator.model().attention_layers())
    passes += 1 + 3 * static_cast<double>(layer.heads) *
                      evaluator.share_from(static_cast<std::size_t>(layer.block));
  return passes;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
