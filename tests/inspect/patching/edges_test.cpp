// Effects of edges and the circuit of models that are hardly trained, whose edges help and harm, against plain
// computations of the definitions in edges.h and measure_edges.h.
#include <cmath>
#include <functional>
#include <numeric>

#include "catch.h"
#include "inspect/interventions.h"
#include "inspect/patching/measure_edges.h"
#include "inspect/patching/residual_paths.h"
#include "thimble/engine/random.h"
#include "train/files/progress_recorder.h"

using namespace thimble;

namespace {

using Side = PairRunner::Side;
using EdgeSet = std::vector<bool>;

constexpr std::int64_t kPairs = 20;  // at most; two batches
constexpr std::uint64_t kSeed = 3;
constexpr double kEdgeTolerance = sizeof(Real) == 8 ? 1e-9 : 1e-5,
                 kSlopeTolerance = sizeof(Real) == 8 ? 1e-6 : 2e-3;

double total(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

// Makes what heads and feed-forward nets do large beside the embedding.
Trained& scaled(Trained& trained) {
  for (const auto& entry : trained.parameters().entries())
    if (entry.name.ends_with("_proj_weight") || entry.name.ends_with("_proj.weight") ||
        entry.name.ends_with("linear2.weight"))
      for (std::size_t i = 0; i < entry.size(); ++i) trained.parameters().values()[entry.offset + i] *= 2;
  trained.give();
  return trained;
}

// Returns pairs for which the model favors the labels of its own input.
std::vector<InputPair> favorable_pairs(Evaluator& evaluator) {
  const std::vector<InputPair> all = draw_pairs(evaluator, 60);
  PairRunner runner(evaluator, all);
  const std::vector<double> clean = runner.differences(Side::clean),
                            corrupted = runner.differences(Side::corrupted);
  std::vector<InputPair> pairs;
  for (std::size_t i = 0; i < all.size() && std::ssize(pairs) < kPairs; ++i)
    if (clean[i] < corrupted[i]) pairs.push_back(all[i]);
  return pairs;
}

std::vector<InputPair> every(const std::vector<InputPair>& pairs, std::size_t first, std::size_t step) {
  std::vector<InputPair> some;
  for (std::size_t i = first; i < pairs.size(); i += step) some.push_back(pairs[i]);
  return some;
}

// A model with large weights, and its logit difference when some edges are patched.
struct EdgeModel {
  Trained trained;
  PairRunner runner;
  const EdgeGraph graph;
  const ResidualPaths paths;
  std::vector<Contributions> clean, corrupted;  // by batch
  double clean_difference, corrupted_difference;

  // With every second of its pairs, from one on, or with all.
  explicit EdgeModel(const Config& config, std::size_t first = 0, std::size_t step = 1)
      : trained(config, 60, 5),
        runner(trained.evaluator, every(favorable_pairs(scaled(trained).evaluator), first, step)),
        graph(config.model),
        paths(dynamic_cast<const Transformer&>(trained.evaluator.model()), graph),
        clean_difference(total(runner.differences(Side::clean))),
        corrupted_difference(total(runner.differences(Side::corrupted))) {
    for (const Side side : {Side::clean, Side::corrupted}) {
      std::vector<Contributions>& of_side = side == Side::clean ? clean : corrupted;
      of_side.resize(runner.batches().size());
      runner.each_batch([&](std::size_t i, Tape& tape) {
        ContributionCapture capture(paths);
        runner.logits(tape, i, side, &capture);
        of_side[i] = capture.values();
      });
    }
  }

  EdgeSet none() const { return EdgeSet(graph.edges.size()); }

  // Returns the share of the way from the clean to the corrupted logit difference that a run goes in which these
  // edges carry the contributions of the corrupted input, or `part` of the way to them.
  double effect(const EdgeSet& edges, double part = 1) {
    if (edges == none()) return 0;
    std::vector<Contributions> donors = corrupted;
    for (std::size_t i = 0; i < donors.size() && part != 1; ++i)
      for (std::size_t s = 0; s < donors[i].size(); ++s)
        for (std::int64_t k = 0; k < donors[i][s].shape().elements(); ++k) {
          const double from = clean[i][s].data()[k], to = corrupted[i][s].data()[k];
          donors[i][s].data()[k] = static_cast<Real>(from + part * (to - from));
        }
    return (total(differences(edges, donors)) - clean_difference) / (corrupted_difference - clean_difference);
  }
  std::vector<double> differences(const EdgeSet& edges) { return differences(edges, corrupted); }
  std::vector<double> differences(const EdgeSet& edges, const std::vector<Contributions>& donors) {
    return runner.differences(Side::clean, "edges", [&](std::size_t i) {
      return std::make_unique<EdgeHooks>(paths, donors[i], edges);
    });
  }
  double kept(const EdgeSet& edges) { return 1 - effect(edges); }
  EdgeSet edges_where(const std::function<bool(std::size_t)>& condition) const {
    EdgeSet set = none();
    for (std::size_t e = 0; e < set.size(); ++e) set[e] = condition(e);
    return set;
  }
  double effect_of(std::size_t edge, double part = 1) {
    return effect(edges_where([&](std::size_t e) { return e == edge; }), part);
  }
};

// The order in which the search of measure_edges.h removes edges, and what happened on its way.
struct Order {
  std::vector<std::size_t> edges;
  int passes = 0;   // in which an edge was removed
  int harmful = 0;  // edges whose removal raised the share
};

Order search_order(EdgeModel& model, double keep) {
  std::vector<double> effects;
  for (std::size_t e = 0; e < model.graph.edges.size(); ++e) effects.push_back(model.effect_of(e));
  std::vector<std::size_t> by_effect(effects.size());
  std::iota(by_effect.begin(), by_effect.end(), std::size_t{0});
  std::ranges::sort(by_effect, {}, [&](std::size_t e) { return std::abs(effects[e]); });
  Order found;
  EdgeSet removed = model.none();
  double before = 1;
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::size_t e : by_effect) {
      EdgeSet with = removed;
      with[e] = true;
      const double kept = model.kept(with);
      if (with == removed || kept < keep) continue;
      found.harmful += kept > before ? 1 : 0;
      before = kept;
      removed = with;
      found.edges.push_back(e);
      changed = true;
    }
    found.passes += changed ? 1 : 0;
  }
  for (const std::size_t e : by_effect)
    if (!removed[e]) found.edges.push_back(e);
  return found;
}

// Returns the edges that go, in this order, down to the first share whose interval begins below `keep`.
EdgeSet walk_down(EdgeModel& model, const std::vector<std::size_t>& order, double keep) {
  const std::vector<double> clean = model.runner.differences(Side::clean),
                            corrupted = model.runner.differences(Side::corrupted);
  EdgeSet removed = model.none();
  for (const std::size_t e : order) {
    EdgeSet with = removed;
    with[e] = true;
    const std::vector<double> patched = model.differences(with);
    std::vector<double> changes, totals;
    for (std::size_t i = 0; i < clean.size(); ++i) {
      changes.push_back(corrupted[i] - patched[i]);
      totals.push_back(corrupted[i] - clean[i]);
    }
    if (mean_change(changes, totals).interval.low < keep) break;
    removed = with;
  }
  return removed;
}

// Returns the k-th random subset of some edges.
EdgeSet drawn_edges(const EdgeModel& model, std::vector<std::size_t> edges, std::size_t size,
                    std::uint32_t k) {
  const Random random(kSeed, Stream::inspect);
  EdgeSet set = model.none();
  for (std::size_t i = 0; i < size; ++i) {
    std::swap(edges[i], edges[i + static_cast<std::size_t>(random.below(edges.size() - i, i, k, 2))]);
    set[edges[i]] = true;
  }
  return set;
}

std::vector<std::size_t> edges_in(const EdgeSet& set) {
  std::vector<std::size_t> edges;
  for (std::size_t e = 0; e < set.size(); ++e)
    if (set[e]) edges.push_back(e);
  return edges;
}

EdgeSet complement_of(EdgeSet set) {
  set.flip();
  return set;
}

EdgeSet united(EdgeSet a, const EdgeSet& b) {
  for (std::size_t e = 0; e < a.size(); ++e) a[e] = a[e] || b[e];
  return a;
}

// Checks what is reported about a circuit, whose edges are known. Returns whether a set worse than random halves was found.
bool check_circuit(EdgeModel& model, const Circuit& circuit, const EdgeSet& removed) {
  const EdgeSet all = complement_of(model.none()), inside = complement_of(removed);
  const std::size_t size = edges_in(inside).size();
  CHECK(circuit.edges == edges_in(inside));
  CHECK_THAT(circuit.kept, WithinAbs(model.kept(removed), kEdgeTolerance));
  CHECK_THAT(circuit.left, WithinAbs(model.kept(inside), kEdgeTolerance));
  REQUIRE(circuit.random == kRandomCircuits);
  std::vector<double> kept, left, gaps;
  EdgeSet worst;
  std::int64_t tried = 0;
  const auto try_set = [&](const EdgeSet& set) {
    ++tried;
    gaps.push_back(std::abs(model.kept(united(removed, set)) - model.kept(set)));
    if (gaps.back() < std::ranges::max(gaps) || (!worst.empty() && std::ranges::count(gaps, gaps.back()) > 1))
      return false;
    worst = set;
    return true;
  };
  try_set(inside);
  for (std::uint32_t k = 0; k < kRandomCircuits; ++k) {
    const EdgeSet random = drawn_edges(model, edges_in(all), size, k);
    kept.push_back(model.kept(complement_of(random)));
    left.push_back(model.kept(random));
    try_set(drawn_edges(model, edges_in(inside), (size + 1) / 2, kRandomCircuits + k));
  }
  const double of_halves = std::ranges::max(gaps);
  CHECK_THAT(circuit.random_mean, WithinAbs(total(kept) / kRandomCircuits, kEdgeTolerance));
  CHECK_THAT(circuit.random_best, WithinAbs(std::ranges::max(kept), kEdgeTolerance));
  CHECK_THAT(circuit.random_left, WithinAbs(total(left) / kRandomCircuits, kEdgeTolerance));
  CHECK(circuit.incompleteness > of_halves - kEdgeTolerance);
  CHECK(circuit.tried > kRandomCircuits);
  CHECK(circuit.tried <= kTriedSets);
  for (bool again = true; again && tried < kTriedSets;) {
    again = false;
    for (const std::size_t e : circuit.edges) {
      EdgeSet set = worst;
      set[e] = !set[e];
      if (tried < kTriedSets) again |= try_set(set);
    }
  }
  CHECK(circuit.tried == tried);
  CHECK_THAT(circuit.incompleteness, WithinAbs(std::ranges::max(gaps), kEdgeTolerance));
  return circuit.incompleteness > of_halves + 0.001;
}

std::vector<Config> edge_configs() {
  std::vector<Config> configs{rich_config(), rich_config(), rich_config()};
  configs[1].model.norm = NormOrder::post;
  configs[1].train.seed = 5;
  configs[2].model.d_ff = 0;
  configs.push_back(configs_of_language_models(rich_config())[0]);
  return configs;
}

}  // namespace

TEST_CASE("effects and attributions of edges are those of runs with one edge patched", "[inspect][slow]") {
  for (const Config& config : edge_configs()) {
    EdgeModel model(config);
    const EdgesReport report = measure_edges(model.runner, model.runner, model.runner, kSeed);
    CHECK(report.inputs.pairs == model.runner.pairs());
    CHECK(model.runner.batches().size() == 2);
    REQUIRE(report.effects.size() == model.graph.edges.size());
    const auto edges = static_cast<double>(report.effects.size());
    double lowest = 0, mean = 0, mean_estimate = 0, xx = 0, yy = 0, xy = 0;
    for (std::size_t e = 0; e < report.effects.size(); ++e) {
      INFO(report.graph.name(e));
      constexpr double kPart = sizeof(Real) == 8 ? 1e-4 : 3e-3;
      const auto rise = [&](double part) { return model.effect_of(e, part) - model.effect_of(e, -part); };
      const double effect = model.effect_of(e), slope = (8 * rise(kPart) - rise(2 * kPart)) / (12 * kPart);
      CHECK_THAT(report.effects[e].exact.effect, WithinAbs(effect, kEdgeTolerance));
      CHECK_THAT(report.effects[e].attribution, WithinAbs(slope, kSlopeTolerance));
      lowest = std::min(lowest, effect);
      mean += report.effects[e].exact.effect / edges;
      mean_estimate += report.effects[e].attribution / edges;
    }
    CHECK(lowest < -0.02);
    for (const EdgeEffect& effect : report.effects) {
      const double x = effect.exact.effect - mean, y = effect.attribution - mean_estimate;
      xx += x * x / edges;
      yy += y * y / edges;
      xy += x * y / edges;
    }
    CHECK_THAT(report.correlation, WithinAbs(xy / std::sqrt(xx * yy), 1e-9));
  }
}

TEST_CASE("patching all edges from a head is patching the head", "[inspect]") {
  for (const Config& config : edge_configs()) {
    EdgeModel model(config);
    for (const PatchingReport::Head& head : measure_patching(model.runner).heads) {
      const EdgeSet from_head = model.edges_where([&](std::size_t e) {
        const Sender& sender = model.graph.senders[model.graph.edges[e].sender];
        return sender.kind == Sender::Kind::head && HeadId{sender.layer, sender.head} == head.id;
      });
      CHECK_THAT(model.effect(from_head), WithinAbs(head.noising.all.effect, kEdgeTolerance));
    }
  }
}

TEST_CASE("edges are ordered by the magnitude of effects and of errors", "[inspect]") {
  EdgesReport report{.inputs = {}, .graph = EdgeGraph(rich_config().model), .effects = {}, .circuit = {}};
  for (const auto& [effect, attribution] :
       {std::pair(0.2, 0.3), {-0.5, -0.4}, {0.1, -0.9}, {0.4, 0.0}, {-0.3, 0.4}})
    report.effects.push_back({{effect}, attribution});
  CHECK(report.by_effect() == std::vector<std::size_t>{1, 3, 4, 0, 2});
  CHECK(report.by_error() == std::vector<std::size_t>{2, 4, 3, 0, 1});
}

TEST_CASE("one half of the pairs orders the edges, the other half shows what the circuit keeps",
          "[inspect][slow]") {
  int passes = 0, worse = 0;
  for (const Config& config : edge_configs()) {
    EdgeModel all(config), first(config, 0, 2), second(config, 1, 2);
    for (const double keep : {kCircuitKeeps, 0.5}) {
      CAPTURE(keep);
      const ProgressRecorder recorder;
      const EdgesReport report = measure_edges(all.runner, first.runner, second.runner, kSeed, keep);
      const auto count = static_cast<std::int64_t>(report.effects.size());
      for (const auto& [work, parts] :
           {std::pair("patching edges", 2 * count + 1),
            {"finding the circuit", count},
            {"measuring random circuits", kRandomCircuits + report.circuit.tried}})
        CHECK(std::ranges::count(recorder.works, work) == 1 + parts);
      const Order found = search_order(first, keep);
      CHECK(report.keep == keep);
      CHECK(report.circuit.pairs == second.runner.pairs());
      REQUIRE(report.circuit.interval.has_value());
      CHECK(report.circuit.interval->low <= report.circuit.kept);
      CHECK((report.circuit.interval->low >= keep || report.circuit.edges.size() == report.effects.size()));
      worse += check_circuit(second, report.circuit, walk_down(second, found.edges, keep)) ? 1 : 0;
      CHECK(found.harmful > 0);
      passes = std::max(passes, found.passes);
    }
  }
  CHECK(passes > 1);
  CHECK(worse > 2);
}

TEST_CASE("if no edge can be removed, the circuit is the model", "[inspect]") {
  EdgeModel model(rich_config());
  const Circuit circuit = measure_edges(model.runner, model.runner, model.runner, kSeed, 10).circuit;
  check_circuit(model, circuit, model.none());
  CHECK(circuit.kept == 1);
  CHECK_THAT(circuit.random_mean, WithinAbs(1, kEdgeTolerance));
}
