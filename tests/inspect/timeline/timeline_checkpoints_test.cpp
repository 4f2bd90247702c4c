// The heads of a run at its kept checkpoints.
#include "catch.h"
#include "thimble/inspect/checkpoint_series.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace {

ModelSource trained(const TemporaryDirectory& directory, const char* series) {
  const Config config = parse_config(
      "task: {name: reverse, length: 6}\ndata: {train: 500, validation: 20, test: 40}\n"
      "model: {d_model: 16, d_ff: 16, heads: 2}\n"
      "train: {steps: 25, batch: 16, checkpoint_every: 10, threads: 1}\n",
      "small", {std::string("train.checkpoint_series=") + series});
  train(config, {.directory = (directory / series).string()});
  return open_run(directory / series);
}

}  // namespace

TEST_CASE("a series has the initialization, the kept checkpoints and the end") {
  const TemporaryDirectory directory;
  const ModelSource model = trained(directory, "true");
  std::vector<std::string> remarks;
  const std::vector<SeriesStep> series = read_checkpoint_series(model, 3, remarks);
  CHECK(remarks.empty());
  std::vector<std::int64_t> steps;
  for (const SeriesStep& step : series) steps.push_back(step.snapshot.step);
  CHECK(steps == std::vector<std::int64_t>{0, 1, 2, 5, 10, 20, 25});
  CHECK(series.back().snapshot.loss == evaluate(model, Split::test).loss);
  for (const SeriesStep& step : series) {
    CHECK(step.examples.size() == 3);
    CHECK(step.snapshot.heads.size() == 2);
    CHECK(step.snapshot.heads[1].id == HeadId{0, 1});
    CHECK(step.snapshot.heads[1].scores.contains("mirror"));
    CHECK(step.examples[0].tokens == series[0].examples[0].tokens);
  }
  CHECK(series[0].examples[0].attention != series[1].examples[0].attention);
  // The map of the last step is that of the trained model, and that of step 0 is its initialization.
  std::vector<ForwardTrace> now, before;
  trace_split(model, Split::test, 1, [&](const ForwardTrace& trace) { now.push_back(trace); });
  trace_split(model, Split::test, 1, [&](const ForwardTrace& trace) { before.push_back(trace); },
              {.untrained = model.config.train.seed});
  CHECK(series.back().examples[0].attention == now[0].attention);
  CHECK(series.front().examples[0].attention == before[0].attention);
}

TEST_CASE("without train.checkpoint_series there is no series") {
  const TemporaryDirectory directory;
  const ModelSource model = trained(directory, "false");
  std::vector<std::string> remarks;
  CHECK(read_checkpoint_series(model, 3, remarks).empty());
  CHECK(model.run.series(model.file, remarks).size() > 1);
}
