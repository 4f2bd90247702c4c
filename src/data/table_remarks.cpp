// What in a table may be a mistake.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "thimble/core/text.h"
#include "thimble/data/table.h"

namespace thimble {

namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

bool names_column(const std::string& token) {
  constexpr std::array<std::string_view, 32> kNames = {
      "answer", "answers",  "category",  "class",       "id",      "in",    "input",    "inputs",
      "label",  "labels",   "out",       "output",      "outputs", "query", "question", "response",
      "result", "sentence", "sentences", "sequence",    "source",  "src",   "target",   "targets",
      "text",   "texts",    "tgt",       "translation", "word",    "words", "x",        "y"};
  return std::ranges::find(kNames, lower(token)) != kNames.end();
}

bool same(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return std::ranges::equal(a, b);
}

// A kind of remark: how many rows, and the first two.
struct Found {
  std::size_t rows = 0;
  std::uint32_t first = 0, second = 0;

  void add(std::uint32_t before, std::uint32_t row) {
    if (rows++ > 0) return;
    first = before;
    second = row;
  }
};

}  // namespace

// A first line that names columns has tokens that no other line has; and they are such names, or every other
// answer occurs more than once, as labels do.
std::optional<std::string> Table::header_remark() const {
  if (files_[0].name.ends_with(".jsonl") || files_[0].end < 3) return std::nullopt;
  std::vector<std::int64_t> counts(tokens_.size()), answers(tokens_.size());
  for (std::uint32_t row = 0; row < files_[0].end; ++row) {
    for (const std::int32_t id : input(row)) ++counts[static_cast<std::size_t>(id)];
    for (const std::int32_t id : target(row)) {
      if (id == kIgnore) continue;
      ++counts[static_cast<std::size_t>(id)];
      ++answers[static_cast<std::size_t>(id)];
    }
  }
  bool alone = true, named = true;
  for (const auto& sequence : {input(0), target(0)}) {
    for (const std::int32_t id : sequence) {
      alone &= id != kIgnore && counts[static_cast<std::size_t>(id)] == 1;
      named &= id != kIgnore && names_column(tokens_[static_cast<std::size_t>(id)]);
    }
  }
  const auto single = std::ranges::count(answers, 1) - std::ssize(target(0));
  if (!alone || (!named && single > 0)) return std::nullopt;
  return fmt::format("{}: the first line looks like names of columns; if it is no example, delete it",
                     where(0));
}

std::vector<std::string> Table::remarks() const {
  const auto less = [](std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
    return std::ranges::lexicographical_compare(a, b);
  };
  std::map<std::span<const std::int32_t>, std::uint32_t, decltype(less)> rows(less);
  Found contradicting, repeated;
  for (std::uint32_t row = 0; row < order_.size(); ++row) {
    const auto [known, added] = rows.try_emplace(input(row), row);
    if (added) continue;
    Found& kind = same(target(known->second), target(row)) ? repeated : contradicting;
    kind.add(known->second, row);
  }
  std::vector<std::string> lines;
  if (!files_.empty() && files_[0].end > 0)
    if (const auto header = header_remark()) lines.push_back(*header);
  const auto add = [&](const Found& found, std::string_view what, std::string_view meaning) {
    if (found.rows == 0) return;
    lines.push_back(fmt::format("{}: {} as {}{}; {}", where(found.second), what, where(found.first),
                                found.rows == 1 ? "" : fmt::format(" (and {} more)", found.rows - 1),
                                meaning));
  };
  add(contradicting, "the same input with another target", "no model can get both right");
  add(repeated, "the same input and target", "the pair counts as often as it occurs");
  return lines;
}

}  // namespace thimble
