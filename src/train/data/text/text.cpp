#include "train/data/text/text.h"

#include "thimble/engine/error.h"
#include "train/data/layout.h"
#include "train/data/table/table_reader.h"
#include "train/files/text/format.h"

namespace thimble {

Text::Text(const TableTexts& texts, const TextOptions& text, std::int64_t length, const DataRecord* trained)
    : Rows(texts.options), text_(text), length_(length) {
  require<DataError>(
      is_stream() || text.split.empty(),
      "task.split has no effect on documents: lines, which are divided by their hashes; remove it");
  require<DataError>(!is_stream() || text.longer == LongDocuments::several,
                     "task.long has no effect on documents: stream; remove it");
  require<DataError>(text.stride <= length, "task.stride ({}) must be at most task.length ({}); lower it",
                     text.stride, length);
  options_.input_tokens = options_.target_tokens = text.tokens;
  options_.no_answer.clear();
  longest_ = {length, length};
  const bool known = trained != nullptr && trained->known();
  TableVocabulary vocabulary(options_.has_unknown(), true);
  if (known) vocabulary.read(trained->vocabulary);
  std::vector<std::int64_t> counts;
  count(texts, vocabulary, known, counts);
  if (!is_stream())  // a boundary is part of every document
    counts[static_cast<std::size_t>(boundary_)] += options_.least_count();
  const std::vector<std::int32_t> ids = number_tokens(vocabulary, counts);
  if (boundary_ != kIgnore) boundary_ = ids[static_cast<std::size_t>(boundary_)];
  store(texts, vocabulary, ids);
  if (!is_stream()) order_documents(known);
  measure();
}

std::int32_t Text::token(std::int64_t i) const {
  const auto at = static_cast<std::size_t>(i);
  return wide_.empty() ? narrow_[at] : wide_[at];
}

Text::Range Text::document(std::uint32_t i) const { return {i == 0 ? 0 : ends_[i - 1], ends_[i]}; }

// Sets the share of the most frequent token among those that are predicted.
void Text::measure() {
  std::vector<std::int64_t> counts(tokens_.size());
  for (std::int64_t i = 0; i < count_; ++i) ++counts[static_cast<std::size_t>(token(i))];
  if (!is_stream())
    for (std::uint32_t i = 0; i < ends_.size(); ++i)
      counts[static_cast<std::size_t>(boundary_)] += used(document(i).size()) > document(i).size() ? 1 : 0;
  std::int64_t all = 0, most = 0;
  for (const std::int64_t n : counts) {
    all += n;
    most = std::max(most, n);
  }
  if (all > 0) chance_ = static_cast<double>(most) / static_cast<double>(all);
}

std::int64_t Text::training_count() const {
  if (is_stream()) return parts_[0].size();
  std::int64_t row = 0, count = 0;
  for (std::size_t i = 0; i < order_.size() && row < splits_[0]; ++i) {
    const std::int64_t n = used(document(order_[i]).size());
    count += n + 1;
    row += row_count(n, Split::train);
  }
  return count;
}

std::int64_t Text::row_count(std::int64_t tokens, Split split) const {
  const std::int64_t stride = split == Split::train || text_.stride == 0 ? length_ : text_.stride;
  return 1 + std::max<std::int64_t>(0, tokens - length_ + stride - 1) / stride;
}

std::vector<std::int32_t> Text::training_tokens(std::int64_t limit) const {
  std::vector<std::int32_t> out{kIgnore};
  if (is_stream()) {
    const std::int64_t end = std::min(parts_[0].end, limit);
    for (std::int64_t i = 0; i < end; ++i) out.push_back(token(i));
    return out;
  }
  std::int64_t row = 0;
  for (std::size_t i = 0; i < order_.size() && row < splits_[0]; ++i) {
    const Range tokens = document(order_[i]);
    const std::int64_t n = used(tokens.size());
    if (std::ssize(out) + n > limit) break;
    out.push_back(boundary_);
    for (std::int64_t j = 0; j < tokens.size(); ++j) out.push_back(token(tokens.begin + j));
    if (n > tokens.size()) out.push_back(boundary_);
    out.push_back(kIgnore);
    row += row_count(n, Split::train);
  }
  return out;
}

Text::Piece Text::piece_of(std::int64_t row) const {
  if (rows_.empty()) return {static_cast<std::size_t>(row), 0};
  const auto found = std::ranges::upper_bound(rows_, row);
  return {static_cast<std::size_t>(found - rows_.begin()),
          row - (found == rows_.begin() ? 0 : static_cast<std::int64_t>(found[-1]))};
}

// Sets the example to a window of a stream.
void Text::copy_window(Range from, std::int64_t first, Example& out) const {
  const std::int64_t n = std::min(length_, from.end - 1 - first);
  out.input.clear();
  out.target.clear();
  for (std::int64_t i = first; i < first + n; ++i) {
    out.input.push_back(token(i));
    out.target.push_back(token(i + 1));
  }
}

// Removes the answers of a window that the one before it has.
void Text::leave_out_known(std::int64_t number, std::int64_t stride, Example& out) const {
  if (number > 0) std::fill_n(out.target.begin(), length_ - stride, kIgnore);
}

void Text::example(std::int64_t row, Example& out) const {
  const std::int64_t stride = stride_of(row);
  if (is_stream()) {
    std::size_t split = 0;
    while (row >= splits_[split]) row -= splits_[split++];
    copy_window(parts_[split], parts_[split].begin + row * stride, out);
    return leave_out_known(row, stride, out);
  }
  const Piece piece = piece_of(row);
  const Range tokens = document(order_[piece.document]);
  const std::int64_t first = piece.number * stride, n = std::min(length_, used(tokens.size()) - first);
  const auto token_at = [&](std::int64_t i) {  // i = 0: the boundary before the document
    return i == 0 || i > tokens.size() ? boundary_ : token(tokens.begin + i - 1);
  };
  out.input.clear();
  out.target.clear();
  for (std::int64_t i = first; i < first + n; ++i) {
    out.input.push_back(token_at(i));
    out.target.push_back(token_at(i + 1));
  }
  leave_out_known(piece.number, stride, out);
}

std::int64_t Text::length_of(std::int64_t row) const {
  if (is_stream()) return 0;
  const Piece piece = piece_of(row);
  return std::min(length_, used(document(order_[piece.document]).size()) - piece.number * stride_of(row));
}

std::int64_t Text::places() const {
  return is_stream() ? std::max<std::int64_t>(0, parts_[0].size() - length_) : 0;
}

void Text::example_at(std::int64_t place, Example& out) const { copy_window(parts_[0], place, out); }

std::string Text::where(std::int64_t row) const {
  if (is_stream()) {
    const std::int64_t stride = stride_of(row);
    std::size_t split = 0;
    while (row >= splits_[split]) row -= splits_[split++];
    const std::int64_t first = parts_[split].begin + row * stride;
    std::size_t file = 0;
    while (first >= starts_[file + 1]) ++file;
    return fmt::format("{}: token {}", files_[file].name, first - starts_[file] + 1);
  }
  const std::uint32_t i = order_[piece_of(row).document];
  std::size_t file = 0;
  while (i >= files_[file].end) ++file;
  const std::uint32_t before = file == 0 ? 0 : files_[file - 1].end;
  const auto blank = std::ranges::upper_bound(blanks_[file], i) - blanks_[file].begin();
  return fmt::format("{}:{}", files_[file].name, i - before + 1 + static_cast<std::uint32_t>(blank));
}

double Text::bytes() const {
  std::size_t blank = 0;
  for (const auto& of : blanks_) blank += of.size();
  // While documents are ordered, their hashes and their numbers by split are there, too.
  const std::size_t documents = ends_.size() * (2 * sizeof(std::uint32_t) + sizeof(std::uint64_t)) +
                                (order_.size() + rows_.size() + blank) * sizeof(std::uint32_t);
  return static_cast<double>(narrow_.size() + 2 * wide_.size() + documents +
                             tokens_.size() * sizeof(std::string));
}

void Text::check(Layout layout) const {
  if (layout == Layout::position) return;
  throw DataError(fmt::format(
      "{0}: 1 problem\n{0}: the answers of a text are its next tokens, one per position{1} model.attention.mask=causal",
      files_[0].name, layout_remedy(layout, Layout::position)));
}

std::vector<std::string> Text::remarks(std::int64_t) const {
  std::vector<std::string> lines;
  for (std::size_t file = 0; file < blanks_.size(); ++file)
    if (!blanks_[file].empty())
      lines.push_back(fmt::format("{}: {} left out", files_[file].name,
                                  counted(std::ssize(blanks_[file]), "blank line")));
  if (longer_ > 0)
    lines.push_back(fmt::format(
        "{} of {} documents have more than task.length={} tokens with the boundary at their end: {}", longer_,
        ends_.size(), length_,
        text_.longer == LongDocuments::first
            ? "the rest is left out, as task.long is cut"
            : fmt::format("they become several windows, {} rows in all; task.long=cut leaves the rest out",
                          rows())));
  if (rows() == 0 || splits_[0] == 0) return lines;
  std::vector<bool> seen(tokens_.size());
  Example e;
  std::int64_t all = 0, unseen = 0, unknown = 0;
  for (std::int64_t row = 0; row < rows(); ++row) {
    example(row, e);
    for (const std::int32_t id : e.target) {
      if (id == kIgnore) continue;
      if (row < splits_[0]) seen[static_cast<std::size_t>(id)] = true;
      all += row < splits_[0] ? 0 : 1;
      unseen += seen[static_cast<std::size_t>(id)] ? 0 : 1;
      unknown += row >= splits_[0] && id == unknown_ ? 1 : 0;
    }
  }
  const auto add = [&](std::int64_t n, std::string_view what) {
    if (n > 0)
      lines.push_back(fmt::format("{:.2g} % of the tokens of validation and test ({} of {}) {}",
                                  100 * static_cast<double>(n) / static_cast<double>(all), n, all, what));
  };
  add(unseen, options_.has_unknown() ? "never occur in training"
                                     : "never occur in training; task.vocabulary=training makes them <unk>");
  add(unknown, "are <unk>, for which no prediction is counted right");
  return lines;
}

}  // namespace thimble
