// Small data sets and their rows, for tests.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <set>
#include <vector>

#include "thimble/train/dataset.h"
#include "train/data/corpus/corpus.h"
#include "train/data/table/table.h"

namespace thimble::rows {

using Tokens = std::vector<std::int32_t>;

inline const TaskConfig kReverse{.name = "reverse", .symbols = 4, .length = 6};

using SourcePointer = std::shared_ptr<const Source>;

inline SourcePointer table_of(const std::string& text) {
  return std::make_shared<Table>(DataTexts{.main = {"t.tsv", text}});
}

inline SourcePointer corpus_of(const std::string& text, const TextOptions& options, std::int64_t length) {
  return std::make_shared<Corpus>(DataTexts{.main = {"t.txt", text}}, options, length);
}

// A source of that task: of a table, rows "0 a = b c", "1 a = b c" and so on.
inline SourcePointer usual(std::string_view name) {
  TaskConfig config{.name = std::string(name)};
  if (name == "anomaly") config.symbols = 64;  // the square of an even number
  if (name == "text") {
    std::string text;
    for (int i = 0; i < 400; ++i) text += fmt::format("{:05x}\n", i * 7);
    return corpus_of(text, {}, 6);
  }
  if (name != "file") return generated_source(config);
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("{} a\tb c\n", i);
  return table_of(text);
}

// "the cat = la - chat": the tokens of a stored row, "-" for no answer.
inline std::string text(const Table& table, std::uint32_t row) {
  std::string out;
  const auto add = [&](std::int32_t id) {
    out += (id == kIgnore ? "-" : table.tokens()[static_cast<std::size_t>(id)]) + " ";
  };
  for (const std::int32_t id : table.input(row)) add(id);
  out += "=";
  for (const std::int32_t id : table.target(row)) (out += " ", add(id), out.pop_back());
  return out;
}

inline Dataset dataset(const TaskConfig& task = kReverse, Layout layout = Layout::position,
                       std::int64_t train = 100, std::uint64_t seed = 3) {
  return Dataset(task, {.train = train, .validation = 40, .test = 50}, layout, seed);
}

inline Batch fill(const Dataset& data, Split split, std::int64_t first, std::int64_t count) {
  Batch batch;
  data.fill(split, first, count, batch);
  return batch;
}

inline Batch step(const Dataset& data, std::int64_t step, std::int64_t batch_size, std::int64_t first,
                  std::int64_t count) {
  Batch batch;
  data.fill_step(step, batch_size, first, count, batch);
  return batch;
}

inline Tokens row(const Tokens& cells, std::int64_t row, std::int64_t width) {
  return Tokens(cells.begin() + row * width, cells.begin() + (row + 1) * width);
}

inline std::set<Tokens> inputs(const Dataset& data, Split split, std::int64_t count) {
  std::set<Tokens> out;
  Example example;
  for (std::int64_t i = 0; i < count; ++i) {
    data.example(split, i, example);
    out.insert(example.input);
  }
  return out;
}

inline std::size_t shared(const std::set<Tokens>& a, const std::set<Tokens>& b) {
  std::size_t count = 0;
  for (const Tokens& tokens : a) count += b.count(tokens);
  return count;
}

}  // namespace thimble::rows
