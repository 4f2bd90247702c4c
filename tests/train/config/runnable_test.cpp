// The experiments in configs/.
#include <fstream>

#include "catch.h"
#include "experiments.h"
#include "program/reproduce/experiment.h"
#include "program/sweep/sweep.h"
#include "source_directory.h"
#include "thimble/train/config.h"

using namespace thimble;

TEST_CASE("every config in configs/ is valid and has data", "[config]") {
  for (const std::string& file : experiments()) {
    INFO(file);
    const OpenConfig config = open_config(file);
    const Dataset data = make_dataset(config);
    CHECK(data.source().disjoint());
    Batch batch;
    CHECK_NOTHROW(data.fill_step(config.train.steps - 1, config.train.batch, 0, config.train.batch, batch));
    const std::int64_t tests = std::min<std::int64_t>(data.size(Split::test), 50);
    CHECK_NOTHROW(data.fill(Split::test, 0, tests, batch));
    CHECK(std::ssize(batch.rows) >= tests);
  }
  CHECK(experiments().size() >= 7);
}

TEST_CASE("every config in configs/ starts with a comment on what it shows", "[config]") {
  for (const std::string& file : experiments()) {
    INFO(file);
    CHECK(std::ifstream(file).get() == '#');
  }
}

TEST_CASE("every sweep in configs/sweeps is valid", "[config]") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_directory() + "/configs/sweeps")) {
    INFO(entry.path().string());
    CHECK_NOTHROW(load_sweep(entry.path().string()));
    ++count;
  }
  CHECK(count >= 1);
}

TEST_CASE("every experiment in configs/reproduce is valid and starts with a comment", "[config]") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_directory() + "/configs/reproduce")) {
    INFO(entry.path().string());
    CHECK_NOTHROW(load_experiment(entry.path().string()));
    CHECK(std::ifstream(entry.path()).get() == '#');
    ++count;
  }
  CHECK(count >= 11);
}
