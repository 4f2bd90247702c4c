// Path patching of edges, patching of heads by position, and the logit lens: against PyTorch, and on models
// whose circuit is known.
#include <cmath>
#include <set>

#include "catch.h"
#include "fixtures_file.h"
#include "inspect/circuits/logit_lens.h"
#include "inspect/hand_made.h"
#include "inspect/interventions.h"
#include "inspect/patching/measure_edges.h"
#include "inspect/patching/patching.h"
#include "inspect/patching/residual_paths.h"

using namespace thimble;

namespace {

Batch batch_of(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& labels,
               std::int64_t sequences) {
  Batch batch;
  batch.sequences = sequences;
  batch.length = std::ssize(tokens) / sequences;
  batch.tokens = tokens;
  batch.lengths.assign(static_cast<std::size_t>(sequences), static_cast<std::int32_t>(batch.length));
  batch.labels = labels;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kIgnore) continue;
    batch.rows.push_back(static_cast<std::int32_t>(i));
    batch.row_labels.push_back(labels[i]);
  }
  return batch;
}

void check_patching(const std::string& file, NormOrder norm) {
  tests::Fixture fixture(file);
  const Shape shape = fixture.shape("clean");
  Config config;
  config.task = {.name = "copy", .symbols = fixture.shape("token_embedding.weight")[0], .length = shape[1]};
  config.model.heads = fixture.integer("heads");
  config.model.d_model = fixture.shape("token_embedding.weight").last();
  config.model.layers = 2;
  config.model.d_ff = fixture.shape("encoder.layers.0.linear1.bias").last();
  config.model.norm = norm;
  config.model.activation = Activation::gelu;
  config.model.positions = Positions::learned;
  config.model.attention.mask = Mask::causal;
  config.train.threads = 1;
  Evaluator evaluator(config);
  fixture.load(evaluator.model().parameters(), "");
  const std::vector<PairBatch> pairs{
      {batch_of(fixture.integers("clean"), fixture.integers("clean_labels"), shape[0]),
       batch_of(fixture.integers("corrupted"), fixture.integers("corrupted_labels"), shape[0])}};
  PairRunner runner(evaluator, pairs);

  const EdgesReport edges = measure_edges(runner, runner, runner, 1);
  std::vector<double> exact, attributions;
  for (const EdgeEffect& effect : edges.effects) {
    exact.push_back(effect.exact.effect);
    attributions.push_back(effect.attribution);
  }
  const Shape all{std::ssize(edges.graph.edges)};
  fixture.compare("edges", all, exact);
  fixture.compare("attributions", all, attributions);

  const PatchingReport heads = measure_patching(runner);
  for (const bool noising : {true, false}) {
    std::vector<double> effects;
    for (const PatchingReport::Head& head : heads.heads) {
      const HeadPatch& patch = noising ? head.noising : head.denoising;
      effects.push_back(patch.all.effect);
      for (const PatchEffect& at : patch.at) effects.push_back(at.effect);
    }
    fixture.compare(noising ? "noising" : "denoising", {std::ssize(heads.heads), 1 + shape[1]}, effects);
  }

  std::vector<Real> lens;
  Tape tape(Tape::Mode::inference);
  tape.bind(runner.model().parameters(), {});
  each_lens(runner.model(), tape, model_input(runner.batches()[0].clean), [&](std::size_t, Var logits) {
    lens.insert(lens.end(), logits.value().data, logits.value().data + logits.shape().elements());
  });
  fixture.compare("lens", fixture.shape("lens"), std::span<const Real>(lens));
  fixture.check_all_used();
}

std::vector<Config> patchable_configs() {
  Config causal = rich_config();
  causal.model.layers = 2;
  std::vector<Config> configs{small_config(), rich_config(), sequence_config()};
  for (const auto& more : {configs_of_heads(causal), configs_of_parts(causal)})
    configs.insert(configs.end(), more.begin(), more.end());
  std::erase_if(configs, [](const Config& c) { return c.model.attention.score == Score::linear; });
  return configs;
}

// Finds an edge by its name, for example "0.0 -> 1.0 key".
const EdgeEffect& edge_of(const EdgesReport& report, const std::string& name) {
  for (std::size_t e = 0; e < report.effects.size(); ++e)
    if (report.graph.name(e) == name) return report.effects[e];
  FAIL("no edge " << name);
  return report.effects[0];
}

}  // namespace

TEST_CASE("edges, heads by position and the logit lens agree with PyTorch", "[inspect][fixture]") {
  check_patching("patching_pre", NormOrder::pre);
  check_patching("patching_post", NormOrder::post);
}

TEST_CASE("a run in which every edge is corrupted is the corrupted run", "[inspect]") {
  for (const Config& config : patchable_configs()) {
    Trained trained(config, 60, 5);
    const auto& model = dynamic_cast<const Transformer&>(trained.evaluator.model());
    PairRunner runner(trained.evaluator, draw_pairs(trained.evaluator, 20));
    const EdgeGraph graph(config.model);
    const ResidualPaths paths(model, graph);
    const std::vector<bool> all(graph.edges.size(), true), none(graph.edges.size(), false);
    std::vector<Contributions> corrupted(runner.batches().size());
    runner.each_batch([&](std::size_t i, Tape& tape) {
      ContributionCapture capture(paths);
      runner.logits(tape, i, PairRunner::Side::corrupted, &capture);
      corrupted[i] = capture.values();
    });
    const auto with = [&](const std::vector<bool>& removed) {
      return [&](std::size_t i) { return std::make_unique<EdgeHooks>(paths, corrupted[i], removed); };
    };
    const std::vector<double> changed = runner.differences(PairRunner::Side::clean, "edges", with(all)),
                              expected = runner.differences(PairRunner::Side::corrupted);
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK_THAT(changed[i], WithinAbs(expected[i], 20 * kTolerance));
    CHECK_THROWS_WITH(runner.differences(PairRunner::Side::clean, "edges", with(none)),
                      ContainsSubstring("nothing was replaced"));
  }
}

TEST_CASE("the logit difference of a pair does not depend on the pairs beside it", "[inspect]") {
  Trained trained(rich_config());
  const std::vector<InputPair> pairs = draw_pairs(trained.evaluator, 4);
  PairRunner all(trained.evaluator, pairs);
  const std::vector<double> found = all.differences(PairRunner::Side::clean);
  REQUIRE(found.size() == 4);
  for (std::size_t i = 0; i < found.size(); ++i) {
    PairRunner one(trained.evaluator, std::span(pairs).subspan(i, 1));
    CHECK_THAT(found[i], WithinAbs(one.differences(PairRunner::Side::clean)[0], 20 * kTolerance));
  }
}

TEST_CASE("a patch that hooks nothing is an error", "[inspect]") {
  Trained trained(rich_config());
  PairRunner runner(trained.evaluator, draw_pairs(trained.evaluator, 4));
  const std::vector<AttentionLayer>& layers = trained.evaluator.model().attention_layers();
  const Tensor donor({4, trained.evaluator.dataset().length(), layers[0].heads * layers[0].d_value});
  const auto patch = [&](HeadId head, std::optional<std::int64_t> position) {
    runner.differences(PairRunner::Side::clean, "head 2.0",
                       [&](std::size_t) { return patch_head(layers, head, donor, position); });
  };
  CHECK_NOTHROW(patch({1, 0}, 6));
  CHECK_THROWS_WITH(patch({2, 0}, {}), "patching head 2.0: nothing was replaced; the model has no such site");
  CHECK_THROWS_WITH(patch({1, 0}, 7), ContainsSubstring("nothing was replaced"));
}

TEST_CASE("the circuit of a hand-made induction model is found", "[inspect][slow]") {
  const hand_made::HandMade made = hand_made::induction();
  Evaluator evaluator(made.config);
  hand_made::give(made, evaluator);
  evaluator.select(Split::test, 60);
  PairRunner runner(evaluator, draw_pairs(evaluator, 40));
  const EdgesReport report = measure_edges(runner, runner, runner, 3);
  // The previous-token head writes the keys of the induction head, which compares them with the current token
  // and copies the token that it attends to.
  const std::set<std::string> known{"embedding -> 0.0 value", "0.0 -> 1.0 key", "embedding -> 1.0 query",
                                    "embedding -> 1.0 value", "1.0 -> logits"};
  for (std::size_t e = 0; e < report.effects.size(); ++e) {
    const std::string name = report.graph.name(e);
    INFO(name << ": " << report.effects[e].exact.effect);
    CHECK(report.in_circuit(e) == known.contains(name));
    if (known.contains(name)) {
      CHECK(report.effects[e].exact.effect > 0.3);
      CHECK(report.effects[e].exact.interval->low > 0.2);
    } else {
      CHECK_THAT(report.effects[e].exact.effect, WithinAbs(0, 1e-3));
    }
  }
  CHECK_THAT(edge_of(report, "1.0 -> logits").exact.effect, WithinAbs(1, 1e-3));
  CHECK(report.circuit.kept > 0.99);
  CHECK(report.circuit.left < 0.01);
  CHECK(report.circuit.random_mean < 0.5);
}

TEST_CASE("the logit lens after the last layer is the model itself", "[inspect]") {
  std::vector<Config> configs = patchable_configs();
  configs.push_back(writing_config());
  for (const Config& config : configs) {
    Trained trained(config, 60, 5);
    const EvalResult whole = trained.evaluator.run();
    const std::vector<LensResult> lens = logit_lens(trained.evaluator, whole);
    REQUIRE(std::ssize(lens) == 1 + config.model.layers);
    CHECK(lens[0].after == "embedding");
    CHECK(lens.back().loss == whole.loss);
    CHECK(lens[0].loss != whole.loss);
    // The same readings, one sequence at a time.
    std::vector<double> losses(lens.size());
    double labeled = 0;
    Tape tape(Tape::Mode::inference);
    tape.bind(trained.evaluator.model().parameters(), {});
    for (const auto& chunk : trained.evaluator.chunks()) {
      const Batch& batch = chunk.batch;
      labeled += static_cast<double>(batch.rows.size());
      each_lens(trained.evaluator.model(), tape, labeled_input(batch), [&](std::size_t depth, Var logits) {
        EvalSums sums;
        add_loss(logits, batch, 0, sums);
        losses[depth] += sums.loss;
      });
    }
    for (std::size_t depth = 0; depth < lens.size(); ++depth)
      CHECK_THAT(lens[depth].loss, WithinRel(losses[depth] / labeled, 1e-5));
  }
  CHECK(lens_names(recurrent_config(Score::dot).model).empty());
  CHECK_THAT(logit_lens_unavailable(recurrent_config(Score::dot).model), StartsWith("recurrent:"));
}

TEST_CASE("pairs have equal lengths, labels at the same positions and at least one that differs",
          "[inspect]") {
  Config config = rich_config();
  config.task = {.name = "parity", .length = 8, .min_length = 5};
  config.model.output.per = OutputPer::sequence;
  Evaluator evaluator(config);
  evaluator.select(Split::test, 60);
  const std::vector<InputPair> pairs = draw_pairs(evaluator, 50);
  CHECK(pairs.size() == 50);
  for (const InputPair& pair : pairs) {
    CHECK(pair.clean != pair.corrupted);
    CHECK_NOTHROW(require_comparable(evaluator, pair));
  }
  CHECK(draw_pairs(evaluator, 3).size() == 3);
  evaluator.select(Split::test, 1);
  CHECK_THROWS_WITH(draw_pairs(evaluator, 10),
                    ContainsSubstring("none of 1 test sequences has a counterpart"));
}

TEST_CASE("pairs have labels at the same positions where a task chooses positions at random", "[inspect]") {
  Config config = small_config();
  config.task = {.name = "masked", .symbols = 6, .length = 4};
  Evaluator evaluator(config);
  evaluator.select(Split::test, 60);
  std::vector<std::vector<std::int32_t>> rows;
  for (std::int64_t i = 0; i < 60; ++i) {
    Batch batch;
    evaluator.dataset().fill(Split::test, i, 1, batch);
    rows.push_back(batch.rows);
  }
  REQUIRE(std::set(rows.begin(), rows.end()).size() > 1);
  for (const InputPair& pair : draw_pairs(evaluator, 60))
    CHECK(rows[static_cast<std::size_t>(pair.clean)] == rows[static_cast<std::size_t>(pair.corrupted)]);
  const auto other = std::ranges::find_if(rows, [&](const auto& r) { return r != rows[0]; });
  CHECK_THROWS_WITH(require_comparable(evaluator, {0, other - rows.begin()}),
                    ContainsSubstring("labels at different positions"));
}

TEST_CASE("edges require an encoder with attention", "[inspect]") {
  CHECK_THROWS_WITH(EdgeGraph(writing_config().model), ContainsSubstring("requires model.kind encoder"));
  CHECK_THROWS_WITH(EdgeGraph(recurrent_config(Score::dot).model), ContainsSubstring("kind recurrent"));
  CHECK_THROWS_WITH(EdgeGraph(convolution_config(small_config()).model),
                    ContainsSubstring("no attention heads"));
  ModelConfig unprojected = small_config().model;
  unprojected.attention.in_proj = false;
  CHECK_THROWS_WITH(EdgeGraph(unprojected), ContainsSubstring("requires in_proj true"));
  const Config shared = configs_of_heads(small_config())[0];
  const EdgeGraph graph(shared.model);
  CHECK(graph.receivers[4].name() == "0.0-1 key");
  CHECK(graph.name(0) == "embedding -> 0.0 query");
  CHECK(EdgeGraph(configs_of_heads(small_config())[2].model).receivers[0].name() == "0.0 query and key");
}
