#include "inspect/patching/measure_edges.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "inspect/patching/residual_paths.h"
#include "thimble/engine/random.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

using Side = PairRunner::Side;
using EdgeSet = std::vector<bool>;  // by edge

double total_of(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

class EdgeMeasurement {
 public:
  EdgeMeasurement(PairRunner& runner, const EdgeGraph& graph, std::uint64_t seed)
      : runner_(runner),
        graph_(graph),
        paths_(dynamic_cast<const Transformer&>(runner.model()), graph),
        random_(seed, Stream::inspect),
        corrupted_(runner.batches().size()),
        clean_(runner.differences(Side::clean)),
        totals_(runner.differences(Side::corrupted)) {
    runner.each_batch([&](std::size_t i, Tape& tape) {
      ContributionCapture capture(paths_);
      runner.logits(tape, i, Side::corrupted, &capture);
      corrupted_[i] = capture.values();
    });
    std::ranges::transform(totals_, clean_, totals_.begin(), std::minus<>());
  }

  // Returns D_patched - D_clean of each pair, with these edges patched.
  std::vector<double> changes(const EdgeSet& removed) {
    std::vector<double> result = runner_.differences(Side::clean, "edges", [&](std::size_t i) {
      return std::make_unique<EdgeHooks>(paths_, corrupted_[i], removed);
    });
    std::ranges::transform(result, clean_, result.begin(), std::minus<>());
    return result;
  }

  // Returns the share of the logit difference that is left with these edges patched, and its interval.
  PatchEffect kept_effect(const EdgeSet& removed) {
    const bool none = std::ranges::find(removed, true) == removed.end();
    PatchEffect effect = patch_effects({none ? std::vector<double>(totals_.size()) : changes(removed)},
                                       totals_, runner_.measure())[0];
    effect.effect = 1 - effect.effect;
    if (effect.interval) effect.interval = {1 - effect.interval->high, 1 - effect.interval->low};
    return effect;
  }
  double kept(const EdgeSet& removed) { return kept_effect(removed).effect; }

  std::vector<PatchEffect> exact_effects() {
    ProgressCounter progress("patching edges", static_cast<double>(graph_.edges.size()));
    std::vector<std::vector<double>> sums;
    for (std::size_t e = 0; e < graph_.edges.size(); ++e) {
      EdgeSet removed(graph_.edges.size());
      removed[e] = true;
      sums.push_back(changes(removed));
      progress.advance();
    }
    return patch_effects(sums, totals_, runner_.measure());
  }

  // Returns the first-order estimate of every effect (edge attribution patching).
  std::vector<double> attributions() {
    std::vector<std::vector<double>> of_batch(runner_.batches().size());
    runner_.each_batch([&](std::size_t i, Tape& tape) { of_batch[i] = attributions(i, tape); },
                       Tape::Mode::training);
    std::vector<double> sums(graph_.edges.size());
    for (const std::vector<double>& some : of_batch)
      std::ranges::transform(sums, some, sums.begin(), std::plus<>());
    for (double& sum : sums) sum /= total_of(totals_);
    return sums;
  }

  // Returns all edges in the order in which they go: by their effect, the least first, while the rest keeps the share, and
  // again until none can be removed; then the rest.
  std::vector<std::size_t> removal_order(std::vector<std::size_t> by_effect, double keep) {
    std::ranges::reverse(by_effect);
    ProgressCounter progress("finding the circuit", static_cast<double>(by_effect.size()));
    EdgeSet removed(by_effect.size());
    std::vector<std::size_t> order;
    for (bool first = true, again = true; again; first = false) {
      again = false;
      for (const std::size_t e : by_effect) {
        if (first) progress.advance();
        if (removed[e]) continue;
        removed[e] = true;
        if (kept(removed) < keep) {
          removed[e] = false;
          continue;
        }
        again = true;
        order.push_back(e);
      }
    }
    std::ranges::copy_if(by_effect, std::back_inserter(order), [&](std::size_t e) { return !removed[e]; });
    return order;
  }

  // Removes edges in this order, down to the last circuit before the first that is not shown to keep the share.
  Circuit find_circuit(const std::vector<std::size_t>& order, double keep) {
    EdgeSet removed(order.size());
    for (const std::size_t e : order) {
      removed[e] = true;
      const PatchEffect effect = kept_effect(removed);
      if ((effect.interval ? effect.interval->low : effect.effect) >= keep) continue;
      removed[e] = false;
      break;
    }
    return describe(removed);
  }

 private:
  static EdgeSet complement(EdgeSet set) {
    set.flip();
    return set;
  }

  // Returns a random subset of that size of the edges, the k-th draw.
  EdgeSet draw(std::vector<std::size_t> edges, std::size_t size, std::uint32_t k) const {
    constexpr std::uint32_t kCircuits = 2;  // resampling pairs use 1
    EdgeSet set(graph_.edges.size());
    for (std::size_t i = 0; i < size; ++i) {
      std::swap(edges[i],
                edges[i + static_cast<std::size_t>(random_.below(edges.size() - i, i, k, kCircuits))]);
      set[edges[i]] = true;
    }
    return set;
  }

  // Returns how much worse the circuit without a set is, or better, than the model without it.
  double gap(const EdgeSet& removed, const EdgeSet& set) {
    EdgeSet both = removed;
    for (std::size_t e = 0; e < set.size(); ++e) both[e] = both[e] || set[e];
    return std::abs(kept(both) - kept(set));
  }

  // Sets the incompleteness: tries the given sets, and then from the worst of them on those with one edge more or less.
  void find_incompleteness(Circuit& circuit, const EdgeSet& removed, const std::vector<EdgeSet>& sets,
                           ProgressCounter& progress) {
    EdgeSet worst;
    const auto is_worse = [&](const EdgeSet& set) {
      ++circuit.tried;
      progress.advance();
      const double found = gap(removed, set);
      if (found <= circuit.incompleteness && !worst.empty()) return false;
      circuit.incompleteness = found;
      worst = set;
      return true;
    };
    for (const EdgeSet& set : sets) is_worse(set);
    for (bool again = true; again;) {
      again = false;
      for (const std::size_t e : circuit.edges) {
        EdgeSet set = worst;
        set[e] = !set[e];
        if (circuit.tried == kTriedSets) return;
        again |= is_worse(set);
      }
    }
  }

  Circuit describe(const EdgeSet& removed) {
    const PatchEffect effect = kept_effect(removed);
    Circuit circuit{.edges = {}, .pairs = effect.pairs, .kept = effect.effect, .interval = effect.interval};
    for (std::size_t e = 0; e < removed.size(); ++e)
      if (!removed[e]) circuit.edges.push_back(e);
    circuit.left = kept(complement(removed));
    circuit.random = kRandomCircuits;
    std::vector<std::size_t> all(removed.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::vector<EdgeSet> sets{complement(removed)};
    ProgressCounter progress("measuring random circuits", kRandomCircuits + kTriedSets);
    constexpr auto kDraws = static_cast<std::uint32_t>(kRandomCircuits);
    for (std::uint32_t k = 0; k < kDraws; ++k) {
      const EdgeSet random = draw(all, circuit.edges.size(), k);
      const double of_random = kept(complement(random));
      circuit.random_mean += of_random / kRandomCircuits;
      circuit.random_best = k == 0 ? of_random : std::max(circuit.random_best, of_random);
      circuit.random_left += kept(random) / kRandomCircuits;
      sets.push_back(draw(circuit.edges, (circuit.edges.size() + 1) / 2, kDraws + k));
      progress.advance();
    }
    find_incompleteness(circuit, removed, sets, progress);
    return circuit;
  }

  std::vector<double> attributions(std::size_t i, Tape& tape) const {
    ContributionCapture clean_pass(paths_);
    const Var z = runner_.logits(tape, i, Side::clean, &clean_pass);
    tape.backward(z, runner_.seed(i, z.value()).matrix());
    std::vector<double> result(graph_.edges.size());
    for (const Receiver& receiver : graph_.receivers) {
      Tape local;
      local.bind(paths_.parameters(), {});
      std::vector<Var> clean;
      for (const Tensor& x : clean_pass.values()) clean.push_back(local.variable(x));
      const Var x = paths_.input(receiver, [&](std::size_t s) { return clean[s]; });
      // In a post-norm model the input of a feed-forward net is the residual stream too, so its gradient is that of
      // the net's output, through the net.
      const bool net = receiver.kind == Receiver::Kind::feed_forward;
      Site site = ResidualPaths::site(receiver);
      if (net) site.kind = SiteKind::feed_forward_output;
      MatrixView dy = clean_pass.on_tape(site).grad();
      if (receiver.of_head()) dy = dy.column_block(receiver.first, receiver.columns);
      local.backward(net ? paths_.feed_forward(receiver, x) : x, dy);
      for (std::size_t s = 0; s < receiver.senders; ++s)
        result[receiver.first_edge + s] = change_along(corrupted_[i][s], clean[s]);
    }
    return result;
  }

  // Returns <corrupted - clean, gradient of clean>.
  static double change_along(const Tensor& corrupted, Var clean) {
    const Real *x = corrupted.data(), *y = clean.value().data, *dy = clean.grad().data;
    double sum = 0;
    for (std::int64_t k = 0; k < corrupted.shape().elements(); ++k)
      sum += (static_cast<double>(x[k]) - static_cast<double>(y[k])) * static_cast<double>(dy[k]);
    return sum;
  }

  PairRunner& runner_;
  const EdgeGraph& graph_;
  const ResidualPaths paths_;
  const Random random_;
  std::vector<Contributions> corrupted_;  // by batch
  std::vector<double> clean_, totals_;    // by pair: D_clean, D_corrupted - D_clean
};

double correlation_of(const std::vector<EdgeEffect>& effects) {
  const auto n = static_cast<double>(effects.size());
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (const EdgeEffect& e : effects) {
    x += e.exact.effect / n;
    y += e.attribution / n;
  }
  for (const EdgeEffect& e : effects) {
    const double dx = e.exact.effect - x, dy = e.attribution - y;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

}  // namespace

EdgesReport measure_edges(PairRunner& all, PairRunner& choosing, PairRunner& measuring, std::uint64_t seed,
                          double keep) {
  EdgesReport report{.inputs = {.pairs = all.pairs(), .measure = all.measure()},
                     .graph = EdgeGraph(all.model().config()),
                     .effects = {},
                     .keep = keep,
                     .circuit = {}};
  const auto effects_of = [](EdgeMeasurement& of) {
    std::vector<EdgeEffect> effects;
    for (const PatchEffect& effect : of.exact_effects()) effects.push_back({effect, 0});
    return effects;
  };
  EdgeMeasurement of_order(choosing, report.graph, seed);
  report.effects = effects_of(of_order);
  const std::vector<std::size_t> order = of_order.removal_order(report.by_effect(), keep);
  report.circuit = EdgeMeasurement(measuring, report.graph, seed).find_circuit(order, keep);
  EdgeMeasurement of_all(all, report.graph, seed);
  report.effects = effects_of(of_all);
  const std::vector<double> attributions = of_all.attributions();
  for (std::size_t e = 0; e < attributions.size(); ++e) report.effects[e].attribution = attributions[e];
  report.correlation = correlation_of(report.effects);
  return report;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
