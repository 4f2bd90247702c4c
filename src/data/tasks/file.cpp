#include "thimble/core/error.h"
#include "thimble/data/table.h"
#include "thimble/data/task.h"

namespace thimble::tasks {
namespace {

const Table& table(const TaskConfig& config) {
  require<DataError>(config.table != nullptr,
                     "task {}: its data files are not open; read the config with open_config", config.name);
  return *config.table;
}

void check(const TaskConfig& config) { table(config); }
std::vector<std::string> tokens(const TaskConfig& config) { return table(config).tokens(); }
ExampleSize size(const TaskConfig& config) { return table(config).longest(); }
double rows(const TaskConfig& config) { return static_cast<double>(table(config).rows()); }
double chance(const TaskConfig& config) { return table(config).chance(); }

void at(const TaskConfig& config, std::int64_t index, Example& example) {
  table(config).example(index, example);
}

}  // namespace

Task file() {
  return {.summary = "your own pairs, from a file",
          .definition =
              "`file` is a JSON Lines (.jsonl) or tab-separated (.tsv, .txt) file with an input and a "
              "target on each line. A hash of the input determines the split of a line, so that equal "
              "inputs are in the same split; validation_file and test_file replace these splits. The "
              "vocabulary is all tokens in sorted order, or the lines of vocabulary_file.",
          .keys = {"file", "validation_file", "test_file", "vocabulary_file"},
          .check = check,
          .tokens = tokens,
          .size = size,
          .at = at,
          .distinct_inputs = rows,
          .table = table,
          .chance = chance};
}

}  // namespace thimble::tasks
