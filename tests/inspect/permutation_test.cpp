// Whether order means anything to a model.
#include "thimble/inspect/permutation.h"

#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/temporary_directory.h"
#include "thimble/core/real.h"
#include "thimble/train/train.h"

using namespace thimble;

namespace {

// Of a model that was trained for a few steps.
PermutationReport measured(const std::string& model, const std::string& task = "{name: reverse, length: 7}") {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  const Config config =
      parse_config("task: " + task + "\ndata: {train: 64, validation: 8, test: 8}\nmodel: " + model +
                       "\ntrain: {steps: 20, batch: 8, threads: 1, precision: " +
                       (sizeof(Real) == 4 ? "float32" : "float64") + ", optimizer: {name: adam, lr: 1e-2}}\n",
                   "t.yaml");
  train(config, {.directory = run});
  return measure_permutation(open_run(run), 5);
}

}  // namespace

TEST_CASE("without positions and mask a model is permutation-equivariant", "[inspect]") {
  const PermutationReport report = measured("{d_model: 16, heads: 2, layers: 2, positions: none}");
  CHECK(report.sequences == 5);
  CHECK(report.logit > 0.1);
  CHECK(report.relative() < (sizeof(Real) == 4 ? 1e-5 : 1e-12));
  const nlohmann::ordered_json json = to_json(report);
  CHECK(json["relative"] == report.worst / report.logit);
}

TEST_CASE("positions and a causal mask give order a meaning", "[inspect]") {
  CHECK(measured("{d_model: 16, heads: 2, positions: sinusoidal}").relative() > 0.01);
  CHECK(measured("{d_model: 16, heads: 2, positions: none, attention: {mask: causal}}",
                 "{name: induction, symbols: 10, length: 5}")
            .relative() > 0.01);
}

TEST_CASE("one output for a sequence stays where it is", "[inspect]") {
  const std::string set = "{name: anomaly, symbols: 64, length: 5}";
  CHECK(measured("{d_model: 16, positions: none, output: {per: sequence}}", set).relative() <
        (sizeof(Real) == 4 ? 1e-5 : 1e-12));
  CHECK(measured("{d_model: 16, positions: none, output: {per: sequence, pooling: first}}", set).relative() >
        0.01);
}
