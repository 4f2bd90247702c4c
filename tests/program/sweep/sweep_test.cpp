// What sweep files give, and what is said of wrong ones, is in tests/cases/sweep_files.txt.
#include "program/sweep/sweep.h"

#include <set>

#include <fmt/format.h>

#include "catch.h"
#include "thimble/train/file.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

TEST_CASE("settings of a sweep share the source of their data", "[sweep]") {
  const TemporaryDirectory directory;
  const std::string sweep_file = (directory / "s.yaml").string();
  write_file(sweep_file, "config: base.yaml\ngrid: {train.seed: [1, 2], task.min_count: [1, 2]}\n");
  write_file(
      directory / "base.yaml",
      "task: {name: file, file: t.tsv}\nmodel: {output: {per: sequence}}\ntrain: {batch: 8, steps: 50}\n");
  std::string rows;
  for (int i = 0; i < 100; ++i) rows += fmt::format("w{} is\t{}\n", i, i % 2);
  write_file(directory / "t.tsv", rows);
  const Sweep sweep = load_sweep(sweep_file);
  std::set<const Source*> sources;
  for (const SweepSetting& setting : sweep.settings) sources.insert(setting.config.source.get());
  CHECK(sweep.settings.size() == 4);
  CHECK(sources.size() == 2);  // one for each vocabulary
  CHECK_FALSE(sources.contains(nullptr));
}
