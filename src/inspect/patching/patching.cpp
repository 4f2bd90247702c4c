#include "inspect/patching/patching.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "inspect/effects/replace_heads.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

std::unique_ptr<Replace> patch_head(std::span<const AttentionLayer> layers, HeadId head, const Tensor& donor,
                                    std::optional<std::int64_t> position) {
  return replace_heads(layers, {&head, 1}, [&donor, position](const HeadRow& own) {
    if (own.position != position.value_or(own.position)) return own.values;
    return donor.matrix().row(own.sequence * donor.shape()[1] + own.position);
  });
}

namespace {

using Side = PairRunner::Side;

// The head outputs of all pairs on one side.
struct HeadOutputs {
  std::vector<std::vector<Tensor>> of;  // [batch][layer], (B, T, H Dv)

  HeadOutputs(PairRunner& runner, Side side) : of(runner.batches().size()) {
    const std::vector<AttentionLayer>& layers = runner.model().attention_layers();
    runner.each_batch([&](std::size_t i, Tape& tape) {
      const Batch& batch = PairRunner::input(runner.batches()[i], side);
      for (const AttentionLayer& layer : layers)
        of[i].emplace_back(Shape{batch.sequences, layer.queries_source ? batch.source_length : batch.length,
                                 layer.heads * layer.d_value});
      Capture::Sites sites;
      for (std::size_t l = 0; l < layers.size(); ++l)
        sites.emplace(Site{SiteKind::head_output, static_cast<std::int32_t>(l)}, &of[i][l]);
      Capture capture(sites);
      runner.logits(tape, i, side, &capture);
    });
  }
};

std::vector<double> operator-(std::vector<double> a, const std::vector<double>& b) {
  std::ranges::transform(a, b, a.begin(), std::minus<>());
  return a;
}

// Returns the number of positions of the longest sequence.
std::int64_t max_positions(const PairRunner& runner, const AttentionLayer& layer) {
  std::int32_t most = 0;
  for (const PairBatch& batch : runner.batches()) {
    const std::vector<std::int32_t>& lengths =
        layer.queries_source ? batch.clean.source_lengths : batch.clean.lengths;
    most = std::max(most, *std::ranges::max_element(lengths));
  }
  return most;
}

// Sets the changes of pairs without the position to NaN.
void leave_out_shorter(std::vector<double>& changes, const PairRunner& runner, const AttentionLayer& layer,
                       std::int64_t position) {
  auto change = changes.begin();
  for (const PairBatch& batch : runner.batches())
    for (const std::int32_t length :
         layer.queries_source ? batch.clean.source_lengths : batch.clean.lengths) {
      if (length <= position) *change = std::numeric_limits<double>::quiet_NaN();
      ++change;
    }
}

std::vector<std::string> names_of(const Dataset& dataset, std::span<const std::int32_t> tokens) {
  std::vector<std::string> result;
  for (const std::int32_t token : tokens) result.push_back(dataset.names()[static_cast<std::size_t>(token)]);
  return result;
}

std::vector<std::string> labels_of(const Dataset& dataset, const Batch& batch) {
  std::vector<std::int32_t> tokens;
  for (const std::int32_t output : batch.row_labels) tokens.push_back(dataset.token_of(output));
  return names_of(dataset, tokens);
}

}  // namespace

PatchingReport measure_patching(PairRunner& runner) {
  const std::vector<AttentionLayer>& layers = runner.model().attention_layers();
  double work = 0;
  PatchingReport report;
  report.inputs = {.pairs = runner.pairs(), .measure = runner.measure()};
  for (std::int64_t l = 0; l < std::ssize(layers); ++l) {
    const AttentionLayer& layer = layers[static_cast<std::size_t>(l)];
    work += static_cast<double>(2 * layer.heads * (1 + max_positions(runner, layer)));
    for (std::int64_t h = 0; h < layer.heads; ++h)
      report.heads.push_back({{l, h}, layer.stack.empty() ? "" : layer.name(), {}, {}});
  }
  ProgressCounter progress("patching heads", work);
  const std::vector<double> clean = runner.differences(Side::clean),
                            corrupted = runner.differences(Side::corrupted);
  const std::vector<double> totals = corrupted - clean;
  report.difference = std::accumulate(totals.begin(), totals.end(), 0.0) / static_cast<double>(totals.size());
  for (const Side base : {Side::clean, Side::corrupted}) {
    const bool noising = base == Side::clean;
    const HeadOutputs outputs(runner, noising ? Side::corrupted : Side::clean);
    std::vector<std::vector<double>> sums;
    for (const PatchingReport::Head& head : report.heads) {
      const auto l = static_cast<std::size_t>(head.id.layer);
      const auto patched = [&](std::optional<std::int64_t> position) {
        const auto make_hooks = [&](std::size_t i) {
          return patch_head(layers, head.id, outputs.of[i][l], position);
        };
        const std::string what = "head " + head.id.name(head.attention);
        const std::vector<double> changed = runner.differences(base, what, make_hooks);
        sums.push_back(noising ? changed - clean : corrupted - changed);
        if (position) leave_out_shorter(sums.back(), runner, layers[l], *position);
        progress.advance();
      };
      patched({});
      for (std::int64_t t = 0; t < max_positions(runner, layers[l]); ++t) patched(t);
    }
    const std::vector<PatchEffect> effects = patch_effects(sums, totals, runner.measure());
    auto next = effects.begin();
    for (PatchingReport::Head& head : report.heads) {
      const std::int64_t positions = max_positions(runner, layers[static_cast<std::size_t>(head.id.layer)]);
      HeadPatch& patch = noising ? head.noising : head.denoising;
      patch = {*next, {next + 1, next + 1 + positions}};
      next += 1 + positions;
    }
  }
  return report;
}

PatchingReport patching(Evaluator& evaluator, std::vector<PairBatch> pairs) {
  const PatchMeasure measure = measure_of(pairs);
  PairRunner runner(evaluator, std::move(pairs), measure);
  PatchingReport report = measure_patching(runner);
  if (runner.pairs() > 1) return report;
  const Dataset& dataset = evaluator.dataset();
  const auto& [clean, corrupted] = runner.batches()[0];
  report.clean = names_of(dataset, clean.input_of(0));
  report.corrupted = names_of(dataset, corrupted.input_of(0));
  report.clean_labels = labels_of(dataset, clean);
  report.corrupted_labels = labels_of(dataset, corrupted);
  return report;
}

PatchingReport patching(Evaluator& evaluator, std::span<const InputPair> pairs) {
  for (const InputPair& pair : pairs) require_comparable(evaluator, pair);
  return patching(evaluator, batches_of(evaluator.dataset(), examples_of(evaluator, pairs)));
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
