#include "thimble/engine/error.h"
#include "thimble/train/data_record.h"
#include "train/data/layout.h"
#include "train/data/table/table.h"

namespace thimble {

std::shared_ptr<const Source> hypotheses_source(const std::string& file, const TaskConfig& config,
                                                Layout layout, DataRecord trained) {
  TableOptions options = config.options;
  options.format = TableFormat::jsonl;
  options.input = options.target = options.separator = "";
  options.input_tokens = config.input_tokens();
  options.target_tokens = config.target_tokens();
  options.max_tokens = 0;
  options.header = options.skip_empty = false;
  if (layout == Layout::seq2seq)
    trained.vocabulary.resize(trained.vocabulary.size() - 2);  // without <begin> and <end>
  std::shared_ptr<const Table> table;
  try {
    const DataText text{.name = file, .file = std::make_shared<InputFile>(file), .hypotheses = layout};
    table = std::make_shared<Table>(DataTexts{.main = text, .options = options}, &trained);
  } catch (const FileError& e) {
    throw DataError(e.what());
  }
  require<DataError>(
      table->rows(Split::test) > 0 && !table->kinds().empty(),
      R"({}: no row says what a head should attend to; write {{"input": [...], "target": [...], "attends": [[query, key, "name"], ...]}} a line)",
      file);
  const ExampleSize longest = table->longest();
  const std::int64_t source = layout == Layout::seq2seq ? longest.input : 0;
  require<DataError>(
      laid_out_length(layout, longest) <= trained.length && source <= trained.source_length,
      "{}: the longest input has {} tokens, and the longest target {}; the model reads at most {}{}", file,
      longest.input, longest.target, trained.length,
      source > 0 ? fmt::format(", and a source of {}", trained.source_length) : "");
  return table;
}

}  // namespace thimble
