// Metrics after the checkpoint from which a run goes on are written again.
#include "train/runs/changed_run.h"

using namespace thimble;

TEST_CASE("lines after the final checkpoint that differ, or are missing, are written again", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(short_run_config(4), {.directory = run.string()});
  const std::string intact = read_file(metrics), expected = timeless_metrics(run);
  const std::size_t last = intact.rfind("{\"step\"");
  REQUIRE_THAT(intact.substr(last), StartsWith(R"({"step":4,"split":"test",)"));
  for (const std::string& text :
       {with_other_digit(intact, intact.rfind("loss\":") + 8), intact.substr(0, last)}) {
    CAPTURE(text);
    write_file(metrics, text);
    CHECK_FALSE(remarks_on(run).empty());
    std::string remarks;
    resume(run, &remarks);
    CHECK(remarks.empty());
    CHECK(timeless_metrics(run) == expected);
    CHECK(remarks_on(run).empty());
  }
}

TEST_CASE("metrics that all come after the checkpoint are written again", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  Config config = short_run_config(12);
  config.train.checkpoint_every = 3;
  train(config, {.directory = run.string(), .stop_after = 6});
  fs::remove(metrics);  // the next one begins at step 7, and is shorter than the lost one
  train(config, {.directory = run.string(), .resume = true, .stop_after = 8});
  write_file(run / "checkpoints" / "step-8.safetensors", "damaged");
  std::string remarks;
  CHECK(resume(run, &remarks).steps == 12);
  CHECK(remarks.empty());
  CHECK_FALSE(fs::exists(metrics.string() + ".replaced"));
  std::vector<std::int64_t> steps;
  for (const Json& line : metrics_of(run))
    if (line.at("split") == "train") steps.push_back(line.at("step"));
  CHECK(steps == std::vector<std::int64_t>{7, 8, 9, 10, 11, 12});
}
