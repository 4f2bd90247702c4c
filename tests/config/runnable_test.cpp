// The experiments in configs/.
#include <filesystem>

#include "catch.h"
#include "thimble/config/config.h"

using namespace thimble;

TEST_CASE("every config in configs/ is valid and its data can be had", "[config]") {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(THIMBLE_SOURCE_DIR "/configs")) {
    if (!entry.is_regular_file()) continue;
    INFO(entry.path().string());
    const Config config = load_config(entry.path().string());
    const Dataset data(config.task, config.data, layout_of(config.model.output.per), config.train.seed);
    CHECK(data.disjoint());
    Batch batch;
    CHECK_NOTHROW(data.fill_step(config.train.steps - 1, config.train.batch, 0, config.train.batch, batch));
    CHECK_NOTHROW(data.fill(Split::test, 0, 100, batch));
    CHECK(std::ssize(batch.rows) >= 100);
    ++count;
  }
  CHECK(count >= 7);
}
