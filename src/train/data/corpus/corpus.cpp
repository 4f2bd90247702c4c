#include "train/data/corpus/corpus.h"

#include "thimble/engine/error.h"
#include "train/data/files/vocabulary.h"
#include "train/data/layout.h"
#include "train/data/table/alike.h"
#include "train/files/hash.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"

namespace thimble {

Corpus::Corpus(const DataTexts& texts, const TextOptions& text, std::int64_t length,
               const DataRecord* trained)
    : FileSource("text", texts), text_(text), length_(length) {
  require<DataError>(
      is_stream() || text.split.empty(),
      "task.split has no effect on documents, which are divided by their hashes; remove it, or set task.documents=stream");
  require<DataError>(!is_stream() || text.longer == LongDocuments::several,
                     "task.long has no effect on documents: stream; remove it");
  require<DataError>(text.stride <= length, "task.stride ({}) must be at most task.length ({}); lower it",
                     text.stride, length);
  const bool is_record = text.documents == TextForm::records;
  require<DataError>(is_record || options().separator.empty(),
                     "task.separator has no effect without task.documents=records; remove it");
  require<DataError>(
      !is_record || !options().separator.empty(),
      "task.documents=records needs what their first lines begin with; set task.separator, such as '>' of FASTA");
  config_.text = text;
  config_.length = length;
  config_.options.no_answer.clear();
  longest_ = {length, length};
  has_windows_ = is_stream();
  Vocabulary vocabulary(options().has_unknown(), true);
  if (trained != nullptr) {
    vocabulary.read(trained->vocabulary);
    require<DataError>(
        is_stream() || trained->boundary.empty() || trained->boundary == boundary_text(),
        "the model was trained on documents with {} between them; set task.documents as it was",
        shown_token(trained->boundary));
  }
  std::vector<std::int64_t> counts;
  count(texts, vocabulary, trained != nullptr, counts);
  if (!is_stream())  // a boundary is part of every document
    counts[static_cast<std::size_t>(boundary_)] += options().least_count();
  const std::vector<std::int32_t> ids = number_tokens(vocabulary, counts);
  if (boundary_ != kIgnore) boundary_ = ids[static_cast<std::size_t>(boundary_)];
  store(texts, vocabulary, ids);
  if (is_stream())
    order_windows();
  else
    order_documents(trained != nullptr);
  measure();
}

std::int32_t Corpus::token(std::int64_t i) const {
  const auto at = static_cast<std::size_t>(i);
  return wide_.empty() ? narrow_[at] : wide_[at];
}

Corpus::Range Corpus::document(std::uint32_t i) const { return {i == 0 ? 0 : ends_[i - 1], ends_[i]}; }

void Corpus::measure() {
  std::vector<std::int64_t> counts(tokens_.size());
  for (std::int64_t i = 0; i < count_; ++i) ++counts[static_cast<std::size_t>(token(i))];
  if (!is_stream())
    for (std::uint32_t i = 0; i < ends_.size(); ++i)
      counts[static_cast<std::size_t>(boundary_)] += used(document(i).size()) > document(i).size() ? 1 : 0;
  set_chance(counts);
}

std::int64_t Corpus::training_count() const {
  if (is_stream()) return parts_[0].size();
  std::int64_t row = 0, count = 0;
  for (std::size_t i = 0; i < order_.size() && row < splits_[0]; ++i) {
    const std::int64_t n = used(document(order_[i]).size());
    count += n + 1;
    row += row_count(n, Split::train);
  }
  return count;
}

std::int64_t Corpus::row_count(std::int64_t tokens, Split split) const {
  const std::int64_t stride = split == Split::train || text_.stride == 0 ? length_ : text_.stride;
  return 1 + std::max<std::int64_t>(0, tokens - length_ + stride - 1) / stride;
}

std::vector<std::int32_t> Corpus::training_tokens(std::int64_t limit) const {
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

Corpus::Piece Corpus::piece_of(std::int64_t row) const {
  if (rows_.empty()) return {static_cast<std::size_t>(row), 0};
  const auto found = std::ranges::upper_bound(rows_, row);
  return {static_cast<std::size_t>(found - rows_.begin()),
          row - (found == rows_.begin() ? 0 : static_cast<std::int64_t>(found[-1]))};
}

std::size_t Corpus::window_of(std::int64_t& row) const {
  std::size_t split = 0;
  while (row >= splits_[split]) row -= splits_[split++];
  if (split > 0) row = windows_[split - 1][static_cast<std::size_t>(row)];
  return split;
}

void Corpus::order_windows() {
  std::string text;
  for (std::size_t split = 1; split < splits_.size(); ++split) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> found;
    for (std::int64_t row = 0; row < splits_[split]; ++row) {
      const std::int64_t begin = parts_[split].begin + row * stride_of(splits_[0]);
      text.clear();
      for (std::int64_t i = begin; i < std::min(begin + length_ + 1, parts_[split].end); ++i)
        (text += tokens_[static_cast<std::size_t>(token(i))]) += '\0';
      found.emplace_back(hash_of(text), static_cast<std::uint32_t>(row));
    }
    std::ranges::sort(found);
    for (const auto& [hash, row] : found) windows_[split - 1].push_back(row);
  }
}

// Sets the example to a window of a stream, or of a document, whose positions count from the boundary before it.
void Corpus::copy_window(Range from, std::int64_t first, Example& out) const {
  const std::int64_t last = is_stream() ? from.end - 1 : used(from.size());
  const auto token_at = [&](std::int64_t i) {
    if (is_stream()) return token(i);
    return i == 0 || i > from.size() ? boundary_ : token(from.begin + i - 1);
  };
  out.input.clear();
  out.target.clear();
  for (std::int64_t i = first; i < std::min(first + length_, last); ++i) {
    out.input.push_back(token_at(i));
    out.target.push_back(token_at(i + 1));
  }
}

// Removes the answers of a window that the one before it has.
void Corpus::leave_out_known(std::int64_t number, std::int64_t stride, Example& out) const {
  if (number > 0) std::fill_n(out.target.begin(), length_ - stride, kIgnore);
}

void Corpus::example(std::int64_t row, Example& out) const {
  const std::int64_t stride = stride_of(row);
  if (is_stream()) {
    const std::size_t split = window_of(row);
    copy_window(parts_[split], parts_[split].begin + row * stride, out);
    return leave_out_known(row, stride, out);
  }
  const Piece piece = piece_of(row);
  copy_window(document(order_[piece.document]), piece.number * stride, out);
  leave_out_known(piece.number, stride, out);
}

ExampleSize Corpus::size(std::int64_t row) const {
  const std::int64_t stride = stride_of(row);
  std::int64_t tokens = 0;  // that are predicted, from the first of the row on
  if (is_stream()) {
    const std::size_t split = window_of(row);
    tokens = parts_[split].size() - 1 - row * stride;
  } else {
    const Piece piece = piece_of(row);
    tokens = used(document(order_[piece.document]).size()) - piece.number * stride;
  }
  return {std::min(length_, tokens), std::min(length_, tokens)};
}

void Corpus::vary(SampleRng& rng, Layout, Example& out) const {
  Example other;
  out.input.clear();
  const auto half = static_cast<std::size_t>(std::max<std::int64_t>(1, length_ / 2));
  while (out.input.size() < half) {
    example(rng.below(rows()), other);
    const std::int32_t token = other.target[static_cast<std::size_t>(rng.below(std::ssize(other.target)))];
    if (token != kIgnore) out.input.push_back(token);
  }
  out.input.insert(out.input.end(), out.input.begin(), out.input.end());
  out.input.resize(std::min(out.input.size(), static_cast<std::size_t>(length_)));
  out.target.assign(out.input.size(), kIgnore);
  for (std::size_t i = half - 1; i < out.input.size(); ++i) out.target[i] = out.input[(i + 1) % half];
}

std::int64_t Corpus::starts() const {
  return is_stream() ? std::max<std::int64_t>(0, parts_[0].size() - length_) : 0;
}

void Corpus::example_from(std::int64_t start, Example& out) const { copy_window(parts_[0], start, out); }

std::string Corpus::where(std::int64_t row) const {
  if (is_stream()) {
    const std::int64_t stride = stride_of(row);
    const std::size_t split = window_of(row);
    const std::int64_t first = parts_[split].begin + row * stride;
    std::size_t file = 0;
    while (first >= starts_[file + 1]) ++file;
    return fmt::format("{}: token {}", given_[file].name, first - starts_[file] + 1);
  }
  return where_document(stored_of(row));
}

std::string Corpus::where_document(std::uint32_t i) const {
  return fmt::format("{}:{}", given_[file_of(i)].name, lines_[i]);
}

void Corpus::check(Layout layout) const {
  if (layout == Layout::position) return;
  throw DataError(fmt::format(
      "{0}: 1 problem\n{0}: the answers of a text are its next tokens, one per position{1} model.attention.mask=causal",
      given_[0].name, layout_remedy(layout, Layout::position)));
}

// Appends remarks on equal documents, and on tokens at the ends of lines that are hard to see.
void Corpus::add_remarks(std::vector<std::string>& lines) const {
  if (repeated_ > 0)
    lines.push_back(fmt::format("{}: same text as in {}{}; duplicates weigh as often as they occur",
                                where_document(repeats_[1]), where_document(repeats_[0]),
                                repeated_ == 1 ? "" : fmt::format(" (and {} more)", repeated_ - 1)));
  const auto id_of = [&](std::string_view token) {
    return std::ranges::find(tokens_, token) - tokens_.begin();
  };
  const std::ptrdiff_t space = id_of(" "), tab = id_of("\t"), carriage = id_of("\r"), line_feed = id_of("\n");
  std::int64_t returns = 0, alone = 0, blanks = 0;
  std::uint32_t next = 0;  // document
  for (std::int64_t i = 0; i < count_; ++i) {
    const bool last = !is_stream() && i + 1 == document(next).end,
               cut = last && text_.longer == LongDocuments::first && document(next).size() == length_,
               ends = last || i + 1 == count_ || token(i + 1) == line_feed;
    next += last ? 1 : 0;
    returns += token(i) == carriage ? 1 : 0;
    alone += token(i) == carriage && !ends ? 1 : 0;
    blanks += ends && !cut && (token(i) == space || token(i) == tab) ? 1 : 0;
  }
  const auto add = [&](std::int64_t n, std::string_view what, std::string_view command) {
    if (n > 0)
      lines.push_back(fmt::format("{}: {} {}; to remove them: {} <{} >NEW", given_[0].name, n, what, command,
                                  shell_command({given_[0].name})));
  };
  add(returns, "carriage returns (␍) are tokens", 2 * alone > returns ? "tr '\\r' '\\n'" : "tr -d '\\r'");
  add(blanks, "lines end in blanks (␣, ⇥), which are tokens", "sed 's/[[:space:]]*$//'");
}

std::vector<std::string> Corpus::remarks(std::int64_t) const {
  std::vector<std::string> lines;
  add_remarks(lines);
  for (std::size_t file = 0; file < left_out_.size(); ++file)
    if (left_out_[file] > 0)
      lines.push_back(fmt::format("{}: {} left out{}", given_[file].name,
                                  counted(left_out_[file], has_lines() ? "line" : "blank line"),
                                  has_lines()
                                      ? ", before the first record"
                                      : "; if they separate documents, set task.documents=paragraphs"));
  if (longer_ > 0)
    lines.push_back(fmt::format(
        "{} of {} documents have more than task.length={} tokens with the boundary at their end: {}", longer_,
        ends_.size(), length_,
        text_.longer == LongDocuments::first
            ? "the rest is left out, as task.long is cut"
            : fmt::format("they become several windows, {} rows in all; task.long=cut leaves the rest out",
                          rows())));
  if (const std::string alike = alike_remark(tokens_); !alike.empty()) lines.push_back(alike);
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
  add(unseen, options().has_unknown() ? "never occur in training"
                                      : "never occur in training; task.vocabulary=training makes them <unk>");
  add(unknown, "are <unk>, for which no prediction is counted right");
  return lines;
}

}  // namespace thimble
