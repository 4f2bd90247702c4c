#include "thimble/data/table_remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "thimble/core/suggest.h"
#include "thimble/core/text.h"

namespace thimble {

namespace {

bool names_column(const std::string& token) {
  constexpr std::array<std::string_view, 32> kNames = {
      "answer", "answers",  "category",  "class",       "id",      "in",    "input",    "inputs",
      "label",  "labels",   "out",       "output",      "outputs", "query", "question", "response",
      "result", "sentence", "sentences", "sequence",    "source",  "src",   "target",   "targets",
      "text",   "texts",    "tgt",       "translation", "word",    "words", "x",        "y"};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return similarity(token, name) == 1; });
}

// How many rows have one kind of mistake, and the first pair of rows.
struct Found {
  std::size_t rows = 0;
  std::uint32_t first = 0, second = 0;

  void add(std::uint32_t before, std::uint32_t row) {
    if (rows++ > 0) return;
    first = before;
    second = row;
  }
};

// Returns a remark if the first line may be a header: no other line has its tokens, and they are usual column
// names, or every other answer occurs more than once, as labels do.
std::optional<std::string> header_remark(const Table& table) {
  if (table.sources()[0].path.ends_with(".jsonl") || table.main_rows() < 3) return std::nullopt;
  std::vector<std::int64_t> counts(table.tokens().size()), answers(table.tokens().size());
  for (std::uint32_t row = 0; row < table.main_rows(); ++row) {
    for (const std::int32_t id : table.input(row)) ++counts[static_cast<std::size_t>(id)];
    for (const std::int32_t id : table.target(row)) {
      if (id == kIgnore) continue;
      ++counts[static_cast<std::size_t>(id)];
      ++answers[static_cast<std::size_t>(id)];
    }
  }
  bool alone = true, named = true;
  for (const auto& sequence : {table.input(0), table.target(0)}) {
    for (const std::int32_t id : sequence) {
      alone &= id != kIgnore && counts[static_cast<std::size_t>(id)] == 1;
      named &= id != kIgnore && names_column(table.tokens()[static_cast<std::size_t>(id)]);
    }
  }
  const auto single = std::ranges::count(answers, 1) - std::ssize(table.target(0));
  if (!alone || (!named && single > 0)) return std::nullopt;
  return fmt::format("{}: the first line may be a header; if it is not an example, delete it",
                     table.where(0));
}

}  // namespace

std::vector<std::string> remarks(const Table& table) {
  const auto less = [](std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
    return std::ranges::lexicographical_compare(a, b);
  };
  std::map<std::span<const std::int32_t>, std::uint32_t, decltype(less)> rows(less);
  Found contradicting, repeated;
  for (std::uint32_t row = 0; row < table.rows(); ++row) {
    const auto [known, added] = rows.try_emplace(table.input(row), row);
    if (added) continue;
    Found& kind =
        std::ranges::equal(table.target(known->second), table.target(row)) ? repeated : contradicting;
    kind.add(known->second, row);
  }
  std::vector<std::string> lines;
  if (const auto header = header_remark(table)) lines.push_back(*header);
  const auto add = [&](const Found& found, std::string_view what, std::string_view meaning) {
    if (found.rows == 0) return;
    lines.push_back(
        fmt::format("{}: {} as in {}{}; {}", table.where(found.second), what, table.where(found.first),
                    found.rows == 1 ? "" : fmt::format(" (and {} more)", found.rows - 1), meaning));
  };
  add(contradicting, "same input with another target", "no model can predict both");
  add(repeated, "same input and target", "duplicates weigh as often as they occur");
  return lines;
}

}  // namespace thimble
