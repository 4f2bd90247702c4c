// Tests of the permutation report.
#include "inspect/trace/permutation.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "catch.h"
#include "thimble/engine/real.h"
#include "thimble/inspect/forward_trace.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace {

// A model after a few steps of training.
ModelSource trained(const std::string& model, const std::string& task, const TemporaryDirectory& directory) {
  const std::string run = (directory / "run").string();
  const Config config =
      parse_config("task: " + task + "\ndata: {train: 64, validation: 8, test: 8}\nmodel: " + model +
                       "\ntrain: {steps: 20, batch: 8, threads: 1, precision: " +
                       (sizeof(Real) == 4 ? "float32" : "float64") + ", optimizer: {name: adam, lr: 1e-2}}\n",
                   "t.yaml");
  train(config, {.directory = run});
  return open_run(run);
}

PermutationReport measured(const std::string& model, const std::string& task = "{name: reverse, length: 7}") {
  const TemporaryDirectory directory;
  return measure_permutation(trained(model, task, directory), 5);
}

}  // namespace

TEST_CASE("without positions and mask a model is permutation-equivariant", "[inspect]") {
  const PermutationReport report = measured("{d_model: 16, heads: 2, layers: 2, positions: none}");
  CHECK(report.sequences == 5);
  CHECK(report.logit > 0.1);
  CHECK(report.relative() < (sizeof(Real) == 4 ? 1e-5 : 1e-12));
  const Json json = to_json(report);
  CHECK(json["relative"] == report.worst / report.logit);
}

TEST_CASE("positions and a causal mask make a model depend on the order", "[inspect]") {
  CHECK(measured("{d_model: 16, heads: 2, positions: sinusoidal}").relative() > 0.01);
  CHECK(measured("{d_model: 16, heads: 2, positions: none, attention: {mask: causal}}",
                 "{name: induction, symbols: 10, length: 5}")
            .relative() > 0.01);
}

TEST_CASE("one output per sequence is not permuted", "[inspect]") {
  const std::string set = "{name: anomaly, symbols: 64, length: 5}";
  CHECK(measured("{d_model: 16, positions: none, output: {per: sequence}}", set).relative() <
        (sizeof(Real) == 4 ? 1e-5 : 1e-12));
  CHECK(measured("{d_model: 16, positions: none, output: {per: sequence, pooling: first}}", set).relative() >
        0.01);
}

TEST_CASE("random orders are uniform permutations, and differ by number", "[inspect]") {
  std::map<std::vector<std::size_t>, int> counts;
  for (std::uint64_t number = 0; number < 6000; ++number) ++counts[random_order(3, number)];
  REQUIRE(counts.size() == 6);
  for (const auto& [order, count] : counts) {
    CHECK(std::ranges::is_permutation(order, std::vector<std::size_t>{0, 1, 2}));
    CHECK_THAT(count, WithinAbs(1000, 4 * std::sqrt(6000 * 5 / 36.0)));
  }
}

TEST_CASE("every sequence is permuted in an order of its own", "[inspect]") {
  const TemporaryDirectory directory;
  const ModelSource source =
      trained("{d_model: 16, heads: 2, positions: sinusoidal}", "{name: reverse, length: 7}", directory);
  const Names names = vocabulary(source);
  double worst = 0;
  std::uint64_t number = 0;
  trace_split(source, Split::test, 5, [&](const ForwardTrace& original) {
    const std::vector<std::size_t> order = random_order(7, number++);
    std::string text;
    for (const std::size_t from : order) text += names[static_cast<std::size_t>(original.tokens[from])] + " ";
    const ForwardTrace permuted = trace_input(source, text);
    const std::size_t width = original.logits.size() / 7;
    for (std::size_t row = 0; row < 7; ++row)
      for (std::size_t v = 0; v < width; ++v)
        worst = std::max(
            worst, std::abs(permuted.logits[row * width + v] - original.logits[order[row] * width + v]));
  });
  CHECK(measure_permutation(source, 5).worst == worst);
}
