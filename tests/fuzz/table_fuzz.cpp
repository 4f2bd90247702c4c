// The reader of data files takes any bytes or throws DataError; what it takes and JSON Lines say again is the
// same table. NUL bytes stand between the files: main, validation, test, vocabulary.
#include <stdexcept>

#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "train/data/table/table.h"

using namespace thimble;

namespace {

// Rows first .. last-1 as JSON Lines.
std::string lines(const Table& table, std::int64_t first, std::int64_t last) {
  std::string out;
  Example example;
  for (std::int64_t row = first; row < last; ++row) {
    table.example(row, example);
    Json line = {{"input", Json::array()}, {"target", Json::array()}};
    for (const std::int32_t id : example.input) line["input"].push_back(table.tokens().at(id));
    for (const std::int32_t id : example.target) {
      if (id == kIgnore)
        line["target"].push_back(nullptr);
      else
        line["target"].push_back(table.tokens().at(id));
    }
    out += json_text(line) + "\n";
  }
  return out;
}

void check_again(const Table& table) {
  const auto [train, validation, test] = table.splits();
  std::string vocabulary;
  for (const std::string& token : table.tokens()) {
    if (token.find_first_of(" \t\r\n") != token.npos) return;  // no line of a vocabulary file
    vocabulary += token + "\n";
  }
  const Table again({.main = {"FILE.jsonl", lines(table, 0, train)},
                     .validation = {{"V.jsonl", lines(table, train, train + validation)}},
                     .test = {{"T.jsonl", lines(table, train + validation, table.rows())}},
                     .vocabulary = {{"VOCABULARY", vocabulary}}});
  bool same = train + validation + test == table.rows() && again.tokens() == table.tokens() &&
              again.splits() == table.splits() && again.chance() == table.chance();
  Example a, b;
  for (std::int64_t row = 0; same && row < table.rows(); ++row) {
    table.example(row, a);
    again.example(row, b);
    same = a.input == b.input && a.target == b.target;
  }
  if (!same) throw std::logic_error("the table, written again, is another");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> texts = {""};
  for (const char c : std::string_view(reinterpret_cast<const char*>(data), size)) {
    if (c == '\0' && texts.size() < 4)
      texts.emplace_back();
    else
      texts.back() += c;
  }
  texts.resize(4);
  const auto file = [&](std::size_t i, std::string name) {
    name += texts[i].starts_with('{') ? ".jsonl" : ".tsv";
    return texts[i].empty() ? std::nullopt : std::optional(DataText{name, texts[i]});
  };
  try {
    const Table table({.main = file(0, "FILE").value_or(DataText{"FILE.tsv", ""}),
                       .validation = file(1, "V"),
                       .test = file(2, "T"),
                       .vocabulary = file(3, "VOCABULARY")});
    check_again(table);
    for (const Layout layout : {Layout::position, Layout::sequence, Layout::next, Layout::seq2seq}) {
      try {
        table.check(layout);
      } catch (const DataError&) {
      }
    }
  } catch (const DataError&) {
  }
  return 0;
}
