#include "thimble/train/batch.h"

#include <algorithm>

#include "thimble/engine/error.h"
#include "thimble/train/dataset.h"
#include "train/data/layout.h"

namespace thimble {

void Dataset::start(std::int64_t count, Batch& out) const {
  out.sequences = count;
  out.length = length_;
  out.source_length = source_length_;
  out.rows.clear();
  out.row_labels.clear();
  out.countable_labels.clear();
  const auto cells = static_cast<std::size_t>(count * length_), rows = static_cast<std::size_t>(count);
  out.tokens.assign(cells, 0);
  out.lengths.resize(rows);
  out.sources.assign(static_cast<std::size_t>(count * source_length_), 0);
  out.source_lengths.resize(layout_ == Layout::seq2seq ? rows : 0);
  out.labels.assign(layout_ == Layout::sequence ? rows : cells, kIgnore);
  out.rows.reserve(out.labels.size());
  out.row_labels.reserve(out.labels.size());
  if (unknown_ != kIgnore) out.countable_labels.reserve(out.labels.size());
}

void Dataset::add_source(std::int64_t row, Batch& out) const {
  const std::vector<std::int32_t>& input = out.example.input;
  require<DataError>(std::ssize(input) <= source_length_, "task {}: an input of {} tokens, the longest is {}",
                     task_.name, input.size(), source_length_);
  out.source_lengths[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(input.size());
  std::ranges::copy(input, out.sources.begin() + row * source_length_);
}

void Dataset::add_row(Split split, std::int64_t index, std::int64_t row, Batch& out) const {
  Example& example = out.example;
  draw(split, index, example);
  const std::vector<std::int32_t>&input = example.input, &target = example.target;
  const ExampleSize size{std::ssize(input), std::ssize(target)};
  check_layout(task_.name, *source_, layout_, size);
  const std::int64_t used = laid_out_length(layout_, size);
  require<DataError>(used <= length_, "task {}: an example of {} tokens, the longest is {}", task_.name, used,
                     length_);

  const std::int64_t offset = row * length_;
  out.lengths[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(used);
  const auto tokens = out.tokens.begin() + offset;
  std::int64_t first_label = layout_ == Layout::sequence ? row : offset, labels = size.target;
  if (layout_ == Layout::seq2seq) {
    add_source(row, out);
    *tokens = bos_token();
    std::ranges::copy(target, tokens + 1);
    out.labels[static_cast<std::size_t>(first_label + labels++)] = eos_token();
  } else {
    std::ranges::copy(input, tokens);
  }
  if (layout_ == Layout::next) {
    std::copy(target.begin(), target.end() - 1, tokens + size.input);
    first_label += size.input - 1;  // the last input token is where the first target is predicted
  }
  std::ranges::copy(target, out.labels.begin() + first_label);
  for (std::int64_t i = first_label; i < first_label + labels; ++i) {
    const std::int32_t label = out.labels[static_cast<std::size_t>(i)];
    if (label == kIgnore) continue;
    out.rows.push_back(static_cast<std::int32_t>(i));
    out.row_labels.push_back(label);
    if (unknown_ != kIgnore) out.countable_labels.push_back(label == unknown_ ? kIgnore : label);
  }
}

void Dataset::fill(Split split, std::int64_t first, std::int64_t count, Batch& out) const {
  const bool endless = split == Split::train && data_.train == 0;
  require<ShapeError>(
      first >= 0 && count >= 0 && (endless || (first <= size(split) && count <= size(split) - first)),
      "dataset: {} {} examples from {}, out of {}", count, split_name(split), first, size(split));
  start(count, out);
  for (std::int64_t row = 0; row < count; ++row) add_row(split, first + row, row, out);
}

void Dataset::fill_step(std::int64_t step, std::int64_t batch, std::int64_t first, std::int64_t count,
                        Batch& out) const {
  require<ShapeError>(step >= 0 && first >= 0 && count >= 0 && first <= batch && count <= batch - first,
                      "dataset: step {}: {} rows from {}, in a batch of {}", step, count, first, batch);
  start(count, out);
  if (data_.train == 0) {
    for (std::int64_t row = 0; row < count; ++row)
      add_row(Split::train, step * batch + first + row, row, out);
    return;
  }
  const Permutation order = epoch_order(step, batch);
  const std::int64_t start_of_rows = step % (data_.train / batch) * batch + first;
  for (std::int64_t row = 0; row < count; ++row) {
    const auto position = static_cast<std::uint64_t>(start_of_rows + row);
    add_row(Split::train, static_cast<std::int64_t>(order(position)), row, out);
  }
}

}  // namespace thimble
