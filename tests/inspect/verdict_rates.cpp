// How often verdicts on heads are wrong, on models whose truth is known from many sequences.
// Usage: verdict_rates RUN...   prints the rows of the table in docs/wrong.md
//
// The truth of a head is its change over kTruth test sequences. Reports are made of N of them each, one after the other, by
// the rules of `inspect`, with the smallest effect, the cap of the loss and the untrained models of all.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <vector>

#include "inspect/effects/effect_scale.h"
#include "inspect/effects/measure_effects.h"
#include "thimble/inspect/verdict.h"
#include "thimble/train/run.h"

namespace {

using namespace thimble;

constexpr std::int64_t kTruth = 20000;
constexpr std::int64_t kReports = 100;  // at most, of each number of sequences

// The results of a model, whole and without each head.
struct Measured {
  EffectScale scale;
  std::vector<SequenceResult> whole;
  std::vector<std::vector<SequenceResult>> without;
};

Measured measure(const std::string& run) {
  ModelSource source = open_run(RunDirectory(run));
  source.config.data.test = kTruth;
  Evaluator evaluator(source.config, *source.open());
  evaluator.select(Split::test, kTruth);
  const AnswerBounds bounds = bound_answers(evaluator);
  const EvalResult baseline = evaluator.run();
  Measured out{.scale = measure_scale(evaluator, baseline, bounds, kSmallestEffect),
               .whole = baseline.per_sequence,
               .without = {}};
  const std::vector<AttentionLayer>& layers = evaluator.model().attention_layers();
  for (std::int64_t l = 0; l < std::ssize(layers); ++l)
    for (std::int64_t h = 0; h < layers[static_cast<std::size_t>(l)].heads; ++h) {
      const std::vector<HeadId> head{{l, h}};
      out.without.push_back(evaluator.run([&] { return replace_heads(layers, head); }).per_sequence);
    }
  return out;
}

struct Counts {
  int reports = 0, heads = 0, wrong = 0;
  int important = 0, unused = 0;              // what the truth is
  int found_important = 0, found_unused = 0;  // and what is said of these
  // Of heads whose true cost is a tenth below the smallest effect, in both measures, those called important, and of those a
  // tenth above it those called unused.
  int near = 0, below_important = 0, above_unused = 0;
};

// Returns the change of the means, without intervals, which take long for so many sequences.
Effect mean_change_of(std::span<const SequenceResult> before, std::span<const SequenceResult> after) {
  Effect out;
  double labels = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    out.accuracy.mean += static_cast<double>(after[i].correct - before[i].correct);
    out.capped_loss.mean += after[i].capped_loss - before[i].capped_loss;
    labels += static_cast<double>(before[i].labeled);
  }
  out.accuracy.mean /= labels;
  out.capped_loss.mean /= labels;
  return out;
}

// Returns the scale on which this cost is `share` of the smallest effect, in both measures.
EffectScale scale_around(EffectScale scale, const Effect& cost, double share) {
  scale.smallest_accuracy = -cost.accuracy.mean / share;
  scale.smallest_loss = cost.capped_loss.mean / share;
  return scale;
}

// Adds the verdicts of a report on `count` sequences from `first` on.
void add_report(const Measured& measured, std::span<const Effect> truth, std::size_t first, std::size_t count,
                Counts& counts) {
  const EffectScale& scale = measured.scale;
  std::vector<Effect> effects;
  for (const std::vector<SequenceResult>& without : measured.without)
    effects.push_back(effect_between(std::span(measured.whole).subspan(first, count),
                                     std::span(without).subspan(first, count), scale.bounds));
  const std::vector<HeadVerdict> verdicts = judge_heads(effects, scale);
  for (std::size_t h = 0; h < verdicts.size(); ++h) {
    const Effect& cost = truth[h];
    const bool costs = cost_in_smallest(cost.capped_loss.mean, cost.accuracy.mean, scale) > 1,
               gains = cost_in_smallest(-cost.capped_loss.mean, -cost.accuracy.mean, scale) > 1,
               is_unused = !costs && !gains;
    const Verdict verdict = verdicts[h].verdict;
    const bool important = verdict == Verdict::important, unused = verdict == Verdict::unused;
    ++counts.heads;
    counts.important += costs;
    counts.unused += is_unused;
    counts.found_important += important && costs;
    counts.found_unused += unused && is_unused;
    counts.wrong +=
        (important && !costs) || (unused && !is_unused) || (verdict == Verdict::harmful && !gains);
    if (!(cost.accuracy.mean < 0) || !(cost.capped_loss.mean > 0)) continue;
    const auto judged = [&](double share) {
      return judge_heads(effects, scale_around(scale, cost, share))[h].verdict;
    };
    ++counts.near;
    counts.below_important += judged(0.9) == Verdict::important;
    counts.above_unused += judged(1.1) == Verdict::unused;
  }
  ++counts.reports;
}

std::string share(int part, int whole) {
  return whole == 0 ? "-" : fmt::format("{:.1f}", 100.0 * part / whole);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kRow = "{:<10} {:>5} {:>5} {:>8} {:>10} {:>7} {:>6} {:>11} {:>11}\n";
  fmt::print(kRow, "", "", "", "", "important", "unused", "", "important", "unused");
  fmt::print(kRow, "run", "heads", "N", "reports", "found", "found", "wrong", "just below", "just above");
  for (const std::string run : std::span(argv + 1, static_cast<std::size_t>(argc - 1))) {
    const Measured measured = measure(run);
    std::vector<Effect> truth;
    for (const std::vector<SequenceResult>& without : measured.without)
      truth.push_back(mean_change_of(measured.whole, without));
    for (const std::size_t count : {25, 100, 300, 1000}) {
      Counts counts;
      for (std::size_t first = 0; first + count <= measured.whole.size() && counts.reports < kReports;
           first += count)
        add_report(measured, truth, first, count, counts);
      fmt::print(kRow, std::filesystem::path(run).filename().string(), measured.without.size(), count,
                 counts.reports, share(counts.found_important, counts.important),
                 share(counts.found_unused, counts.unused), share(counts.wrong, counts.heads),
                 share(counts.below_important, counts.near), share(counts.above_unused, counts.near));
    }
  }
}
