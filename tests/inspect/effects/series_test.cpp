// Passes that start at a layer, alone and in series, have the bits of whole passes.
#include <algorithm>
#include <memory>
#include <vector>

#include "catch.h"
#include "inspect/interventions.h"
#include "inspect/saved_model.h"

using namespace thimble;

namespace {

// Returns every head of every attention, alternating between high and low layers.
std::vector<HeadId> all_heads(const Evaluator& evaluator) {
  std::vector<HeadId> heads;
  const std::int64_t count = std::ssize(evaluator.model().attention_layers());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t l = i % 2 == 0 ? count - 1 - i / 2 : i / 2;
    for (std::int64_t h = 0; h < evaluator.model().attention_layers()[static_cast<std::size_t>(l)].heads; ++h)
      heads.push_back({l, h});
  }
  return heads;
}

EvalResult without(Evaluator& evaluator, std::span<const HeadId> heads, const BlockInput* from = nullptr) {
  return evaluator.run([&] { return replace_heads(evaluator.model().attention_layers(), heads); },
                       Tape::Mode::inference, from);
}

std::size_t block_of(const Evaluator& evaluator, HeadId head) {
  return static_cast<std::size_t>(
      evaluator.model().attention_layers()[static_cast<std::size_t>(head.layer)].block);
}

std::vector<Config> configs() {
  Config pre = deep_config(), bare = deep_config();
  pre.model.norm = NormOrder::pre;
  bare.model.d_ff = 0;
  return {rich_config(), deep_config(), pre, bare};
}

}  // namespace

TEST_CASE("a pass that starts at the layer of an ablated head equals the whole pass", "[inspect]") {
  for (const Config& config : configs()) {
    Trained trained(config, 60, 5);
    Evaluator& evaluator = trained.evaluator;
    const std::vector<HeadId> heads = all_heads(evaluator);
    for (const HeadId& head : heads) {
      CAPTURE(head.layer, head.head);
      BlockInput input = evaluator.block_input(block_of(evaluator, head), evaluator.sequences());
      const Capture::Sites sites = evaluator.input_sites(input);
      const EvalResult as_is = evaluator.run([&] { return std::make_unique<Capture>(sites); });
      const EvalResult whole = without(evaluator, {&head, 1}), part = without(evaluator, {&head, 1}, &input);
      CHECK(part.loss == whole.loss);
      CHECK(part.loss != as_is.loss);
      CHECK(std::ranges::equal(part.per_sequence, whole.per_sequence, {}, &SequenceResult::loss,
                               &SequenceResult::loss));
    }
  }
}

TEST_CASE("cumulative ablation in a series equals whole passes", "[inspect]") {
  std::vector<Config> all = configs();
  all.push_back(recurrent_config(Score::additive));
  for (const Config& config : all) {
    Trained trained(config, 60, 5);
    Evaluator& evaluator = trained.evaluator;
    const std::vector<HeadId> heads = all_heads(evaluator);
    std::vector<std::size_t> blocks;
    for (const HeadId& head : heads) blocks.push_back(block_of(evaluator, head));
    const std::vector<EvalResult> series = evaluator.run_series(blocks, [&](std::size_t k) {
      return replace_heads(evaluator.model().attention_layers(), std::span(heads).first(k + 1));
    });
    REQUIRE(series.size() == heads.size());
    for (std::size_t k = 0; k < heads.size(); ++k) {
      CAPTURE(k, heads[k].layer, heads[k].head);
      const EvalResult whole = without(evaluator, std::span(heads).first(k + 1));
      CHECK(series[k].loss == whole.loss);
      CHECK(series[k].accuracy == whole.accuracy);
      CHECK(series[k].sequence_accuracy == whole.sequence_accuracy);
    }
  }
}
