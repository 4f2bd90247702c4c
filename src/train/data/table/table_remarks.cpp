#include "train/data/table/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include "train/data/table/alike.h"
#include "train/data/table/table_format.h"
#include "train/files/hash.h"
#include "train/files/text/format.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

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

// How often each token occurs in inputs and in targets.
using Counts = std::array<std::vector<std::int64_t>, 2>;

// Counts the tokens of the first stored rows.
Counts counts_of(const Table& table, std::int64_t rows) {
  Counts counts;
  for (auto& of : counts) of.resize(table.tokens().size());
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (const std::int32_t id : table.input(row)) ++counts[0][static_cast<std::size_t>(id)];
    for (const std::int32_t id : table.target(row))
      if (id != kIgnore) ++counts[1][static_cast<std::size_t>(id)];
  }
  return counts;
}

// Adds a remark if the first line may be a header: no other line has its tokens, and they are usual column
// names, or every other answer occurs more than once, as labels do.
void add_header(const Table& table, std::vector<std::string>& lines) {
  const TableFormat format = format_of(table.files()[0].path, table.options());
  const bool separated = format == TableFormat::tsv || format == TableFormat::csv;
  if (!separated || table.main_rows() < 3 || !table.stored_where(0).ends_with(":1")) return;
  const auto [inputs, answers] = counts_of(table, table.main_rows());
  bool alone = true, named = true;
  for (const auto& sequence : {table.input(0), table.target(0)}) {
    for (const std::int32_t id : sequence) {
      const auto token = static_cast<std::size_t>(id);
      alone = alone && id != kIgnore && inputs[token] + answers[token] == 1;
      named = named && id != kIgnore && names_column(table.tokens()[token]);
    }
  }
  const auto single = std::ranges::count(answers, 1) - std::ssize(table.target(0));
  if (alone && (named || single <= 0))
    lines.push_back(
        fmt::format("{}: the first line may be a header; if it is not an example, set task.header=true",
                    table.stored_where(0)));
}

// A row, and the first one before it with the same key.
using Repeated = std::pair<std::uint32_t, std::uint32_t>;

template <class Key>
std::vector<Repeated> repeated_by(const Table& table, const Key& key) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> rows;
  for (std::uint32_t row = 0; row < table.rows(); ++row) rows.emplace_back(key(row), row);
  std::ranges::sort(rows);
  std::vector<Repeated> found;
  for (std::size_t i = 1, first = 0; i < rows.size(); ++i) {
    if (rows[i].first != rows[first].first) first = i;
    if (i > first) found.emplace_back(rows[i].second, rows[first].second);
  }
  return found;
}

// Adds remarks on rows with equal inputs: as text, and those that are equal only after tokens became <unk>.
void add_equal_inputs(const Table& table, std::vector<std::string>& lines) {
  const auto text = [&](std::uint32_t row) { return table.input_hash(row); };
  const auto ids = [&](std::uint32_t row) {
    const auto input = table.input(row);
    return hash_of({reinterpret_cast<const char*>(input.data()), input.size_bytes()});
  };
  const auto add = [&](std::vector<Repeated> found, const auto& is_other, std::string_view what,
                       std::string_view meaning) {
    std::erase_if(found, is_other);
    if (found.empty()) return;
    const auto [row, before] = std::ranges::min(found);
    lines.push_back(
        fmt::format("{}: {} as in {}{}; {}", table.stored_where(row), what, table.stored_where(before),
                    found.size() == 1 ? "" : fmt::format(" (and {} more)", found.size() - 1), meaning));
  };
  const auto is_same = [&](const Repeated& rows) {
    return std::ranges::equal(table.target(rows.first), table.target(rows.second));
  };
  const std::vector<Repeated> same = repeated_by(table, text);
  add(same, is_same, "same input with another target",
      std::ranges::all_of(same, is_same) ? "" : "no model can predict both" + table.columns_remedy());
  add(same, std::not_fn(is_same), "same input and target", "duplicates weigh as often as they occur");
  if (table.unknown() == kIgnore) return;
  add(
      repeated_by(table, ids), [&](const Repeated& rows) { return text(rows.first) == text(rows.second); },
      "same input after tokens became <unk>", "the model cannot tell these lines apart");
}

void add_quotes(const Table& table, std::vector<std::string>& lines) {
  const auto is_quoted = [&](std::span<const std::int32_t> ids) {
    const auto name = [&](std::int32_t id) -> std::string_view {
      return id == kIgnore ? "" : std::string_view(table.tokens()[static_cast<std::size_t>(id)]);
    };
    return name(ids.front()).starts_with('"') && name(ids.back()).ends_with('"');
  };
  for (std::uint32_t row = 0; row < table.rows(); ++row)
    if (!is_quoted(table.input(row)) || !is_quoted(table.target(row))) return;
  lines.push_back(fmt::format(
      "{}: every field is in quotes, which are part of its tokens; to drop them, set task.format=csv{}",
      table.stored_where(0), table.options().separator.empty() ? " task.separator='\"\\t\"'" : ""));
}

void add_single(const Table& table, const Counts& counts, std::vector<std::string>& lines) {
  constexpr std::int64_t kMinTokens = 20;
  constexpr std::string_view kSequences[] = {"input", "target"};
  const ColumnTokens cut[] = {table.options().input_tokens, table.options().target_tokens};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto all = std::ranges::count_if(counts[i], [](std::int64_t n) { return n > 0; });
    const auto once = std::ranges::count(counts[i], 1);
    if (all < kMinTokens || once * 10 < all * 9 || cut[i] != Tokenization::spaces ||
        table.counts().cuts[i] == Cut::none)
      continue;
    lines.push_back(fmt::format(
        "{} of {} tokens in {}s occur once: are they separated by spaces? if not, set task.{}_tokens=characters, or words",
        once, all, kSequences[i], kSequences[i]));
  }
}

void add_numbers(const Table& table, const std::vector<std::int64_t>& targets,
                 std::vector<std::string>& lines) {
  constexpr std::int64_t kMinClasses = 20;
  std::int64_t classes = 0;
  bool fraction = false;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == 0) continue;
    if (!parse_number<double>(table.tokens()[i])) return;
    fraction |= table.tokens()[i].find('.') != std::string::npos;
    ++classes;
  }
  if (classes >= kMinClasses || (fraction && classes > 1))
    lines.push_back(fmt::format(
        "targets are {} different numbers, each of which is a class of its own: a model does not learn that 2 is between 1 and 3",
        classes));
}

void add_lengths(const Table& table, std::vector<std::string>& lines) {
  std::vector<std::int64_t> lengths;
  for (std::uint32_t row = 0; row < table.rows(); ++row)
    lengths.push_back(std::max(std::ssize(table.input(row)), std::ssize(table.target(row))));
  if (lengths.empty()) return;
  const std::size_t most = (lengths.size() * 99 + 99) / 100 - 1;
  std::ranges::nth_element(lengths, lengths.begin() + static_cast<std::ptrdiff_t>(most));
  const std::int64_t usual = lengths[most], longest = *std::ranges::max_element(lengths);
  if (longest >= 4 * usual && longest >= usual + 16)
    lines.push_back(fmt::format(
        "the longest sequence has {} tokens, 99 % of the lines at most {}; task.max_tokens={} leaves longer ones out",
        longest, usual, usual));
}

void add_marker(const Table& table, const std::vector<std::int64_t>& targets,
                std::vector<std::string>& lines) {
  const TableCounts& counts = table.counts();
  const std::string marker = printable(table.options().no_answer);
  const std::int64_t all = std::accumulate(targets.begin(), targets.end(), counts.no_answers);
  const std::string remedy = fmt::format("; if {} is a token here, set task.no_answer=\"\"", marker);
  if (counts.no_answers > 0 && counts.blank_inputs > 0)
    lines.push_back(
        fmt::format("{} occurs {} times in inputs, and marks {} positions of targets as without an answer{}",
                    marker, counts.blank_inputs, counts.no_answers, remedy));
  else if (counts.no_answers * 4 > all)
    lines.push_back(
        fmt::format("{:.1f} % of the positions of targets are {}, which marks positions without an answer{}",
                    100 * static_cast<double>(counts.no_answers) / static_cast<double>(all), marker, remedy));
}

// Adds what of validation and test does not occur in training, and what <unk> replaces.
void add_unseen(const Table& table, std::int64_t train, std::vector<std::string>& lines) {
  std::vector<bool> seen(table.tokens().size());
  const auto each = [&](std::int64_t first, std::int64_t last, const auto& f) {
    for (std::int64_t i = first; i < last; ++i)
      for (const auto& ids : {table.input(table.stored_of(i)), table.target(table.stored_of(i))})
        for (const std::int32_t id : ids)
          if (id != kIgnore) f(id, ids.data() == table.target(table.stored_of(i)).data());
  };
  const std::int64_t training = table.splits()[0];
  each(0, std::min(train, training),
       [&](std::int32_t id, bool) { seen[static_cast<std::size_t>(id)] = true; });
  std::int64_t all = 0, unseen = 0, answers = 0, unknown = 0;
  each(training, table.rows(), [&](std::int32_t id, bool is_answer) {
    ++all;
    unseen += seen[static_cast<std::size_t>(id)] ? 0 : 1;
    answers += is_answer ? 1 : 0;
    unknown += is_answer && id == table.unknown() ? 1 : 0;
  });
  const auto percent = [](std::int64_t part, std::int64_t of) {
    return 100 * static_cast<double>(part) / static_cast<double>(of);
  };
  if (unseen > 0)
    lines.push_back(fmt::format(
        "{:.1f} % of the tokens of validation and test ({} of {}) never occur in training{}",
        percent(unseen, all), unseen, all,
        table.options().has_unknown() ? "" : "; task.vocabulary=training replaces such tokens by <unk>"));
  if (unknown > 0)
    lines.push_back(fmt::format(
        "{:.1f} % of the answers of validation and test ({} of {}) are <unk>, for which no prediction is counted right",
        percent(unknown, answers), unknown, answers));
  const std::string long_ones =
      fmt::format("more than task.max_tokens={} tokens", table.options().max_tokens);
  for (const auto& [count, which] :
       {std::pair(table.counts().too_long, long_ones), {table.counts().empty, "an empty field"}})
    if (count > 0)
      lines.push_back(
          fmt::format("{} with {} {} left out", counted(count, "line"), which, count == 1 ? "is" : "are"));
}

}  // namespace

std::vector<std::string> Table::remarks(std::int64_t train) const {
  const Table& table = *this;
  std::vector<std::string> lines;
  if (table.rows() == 0) return lines;
  add_header(table, lines);
  add_equal_inputs(table, lines);
  const Counts counts = counts_of(table, table.rows());
  add_quotes(table, lines);
  add_single(table, counts, lines);
  if (const std::string alike = alike_remark(table.tokens()); !alike.empty()) lines.push_back(alike);
  add_numbers(table, counts[1], lines);
  add_lengths(table, lines);
  add_marker(table, counts[1], lines);
  add_unseen(table, train, lines);
  return lines;
}

}  // namespace thimble
