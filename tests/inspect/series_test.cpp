// Passes that start at a layer, alone and in series, have the bits of whole passes.
#include <algorithm>
#include <memory>
#include <vector>

#include "catch.h"
#include "inspect/interventions.h"
#include "inspect/saved_pair.h"

using namespace thimble;

namespace {

const Substitute kNothing = [](std::int64_t, std::int64_t) -> const Real* { return nullptr; };

// Every head of every attention, those of high layers and low ones in turns.
std::vector<HeadId> all_heads(const Subject& subject) {
  std::vector<HeadId> heads;
  const std::int64_t count = std::ssize(subject.model().attention_layers());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t l = i % 2 == 0 ? count - 1 - i / 2 : i / 2;
    for (std::int64_t h = 0; h < subject.model().attention_layers()[static_cast<std::size_t>(l)].heads; ++h)
      heads.push_back({l, h});
  }
  return heads;
}

Outcomes without(Subject& subject, std::span<const HeadId> heads, const LayerInput* from = nullptr) {
  return subject.run(
      [&] { return std::make_unique<Ablation>(subject.model().attention_layers(), heads, kNothing); },
      Tape::Mode::inference, from);
}

std::vector<Config> configs() {
  Config pre = deep_config(), bare = deep_config();
  pre.model.norm = NormOrder::pre;
  bare.model.d_ff = 0;
  return {rich_config(), deep_config(), pre, bare};
}

}  // namespace

TEST_CASE("a pass that starts at the layer of a removed head is the whole pass without it", "[inspect]") {
  for (const Config& config : configs()) {
    Trained trained(config, 60, 5);
    Subject& subject = trained.subject;
    const std::vector<HeadId> heads = all_heads(subject);
    for (const HeadId& head : heads) {
      CAPTURE(head.layer, head.head);
      LayerInput input = subject.layer_input(
          subject.stack_layer(static_cast<std::size_t>(head.layer)).value(), subject.sequences());
      const Capture::Sites sites = subject.input_sites(input);
      const Outcomes as_is = subject.run([&] { return std::make_unique<Capture>(sites); });
      const Outcomes whole = without(subject, {&head, 1}), part = without(subject, {&head, 1}, &input);
      CHECK(part.total.loss == whole.total.loss);
      CHECK(part.total.loss != as_is.total.loss);
      CHECK(std::ranges::equal(part.sequences, whole.sequences, {}, &Outcome::loss, &Outcome::loss));
    }
  }
}

TEST_CASE("heads that are removed in a series are removed as in whole passes", "[inspect]") {
  std::vector<Config> all = configs();
  all.push_back(recurrent_config(Score::additive));
  for (const Config& config : all) {
    Trained trained(config, 60, 5);
    Subject& subject = trained.subject;
    const std::vector<HeadId> heads = all_heads(subject);
    std::vector<std::size_t> attentions;
    for (const HeadId& head : heads) attentions.push_back(static_cast<std::size_t>(head.layer));
    const std::vector<Baseline> series = subject.run_series(attentions, [&](std::size_t k) {
      return std::make_unique<Ablation>(subject.model().attention_layers(), std::span(heads).first(k + 1),
                                        kNothing);
    });
    REQUIRE(series.size() == heads.size());
    for (std::size_t k = 0; k < heads.size(); ++k) {
      CAPTURE(k, heads[k].layer, heads[k].head);
      const Baseline whole = without(subject, std::span(heads).first(k + 1)).total;
      CHECK(series[k].loss == whole.loss);
      CHECK(series[k].accuracy == whole.accuracy);
      CHECK(series[k].sequence_accuracy == whole.sequence_accuracy);
    }
  }
}
