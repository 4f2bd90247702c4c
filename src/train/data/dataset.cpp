#include "thimble/train/dataset.h"

#include <algorithm>
#include <numeric>

#include "thimble/engine/error.h"
#include "train/data/layout.h"

namespace thimble {

constexpr std::int64_t kVaried = 1 << 20;  // examples

Dataset::Dataset(std::shared_ptr<const Source> source, const DataConfig& data, Layout layout,
                 std::uint64_t seed, Outputs outputs)
    : source_(std::move(source)),
      data_(split_sizes(*source_, data)),
      layout_(layout),
      sizes_(model_sizes(*source_, layout, outputs)),
      names_(token_names(*source_, layout)),
      order_(seed, Stream::order),
      draws_(seed, Stream::data) {
  if (sizes_.outputs == 0) return;
  outputs_.assign(source_->tokens().size(), kIgnore);
  for (std::int32_t i = 0; const std::int32_t token : output_tokens())
    outputs_[static_cast<std::size_t>(token)] = i++;
}

std::int64_t Dataset::size(Split split) const {
  if (split == Split::varied) return source_->varies() ? kVaried : 0;
  return data_.size(split);
}

void Dataset::require_rows(Split split) const {
  if (split == Split::varied) return;
  source_->require_rows(split);
  require<DataError>(
      task().at == nullptr || size(split) > 0,
      "task {}: data.train has {} of the {} inputs, so the {} split is empty; lower data.train",
      config().name, data_.train, source_->distinct_inputs(), split_name(split));
}

void Dataset::example(Split split, std::int64_t index, Example& out) const {
  const bool endless = split == Split::train && data_.train == 0;
  require<ShapeError>(index >= 0 && (endless || index < size(split)), "dataset: {} example {} of {}",
                      split_name(split), index, size(split));
  if (split != Split::varied) return source_->example(split, index, out);
  SampleRng rng(draws_, static_cast<std::uint64_t>(index), static_cast<std::uint32_t>(split));
  source_->vary(rng, layout_, out);
}

std::string Dataset::where(Split split, std::int64_t index) const {
  return split == Split::varied ? "" : source_->where(split, index);
}

void Dataset::drawn_rows(std::int64_t step, std::int64_t batch, std::int64_t first, std::int64_t count,
                         std::vector<std::int64_t>& rows) const {
  rows.resize(static_cast<std::size_t>(count));
  if (const std::int64_t starts = source_->starts(); starts > 0) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = SampleRng(order_, static_cast<std::uint64_t>(step * batch + first) + i, 0).below(starts);
    return;
  }
  if (data_.train == 0) return std::iota(rows.begin(), rows.end(), step * batch + first);
  require<DataError>(
      batch >= 1 && batch <= data_.train,
      "dataset: a batch of {} needs as many training sequences, there are {}; lower train.batch", batch,
      data_.train);
  const std::int64_t steps_per_epoch = data_.train / batch;
  const Permutation order(static_cast<std::uint64_t>(data_.train), order_,
                          static_cast<std::uint64_t>(step / steps_per_epoch));
  const auto start = static_cast<std::uint64_t>(step % steps_per_epoch * batch + first);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(order(start + i));
}

RowLengths Dataset::lengths_of(const ExampleSize& size) const {
  return {laid_out_length(layout_, size), layout_ == Layout::seq2seq ? size.input : 0};
}

RowLengths Dataset::row_lengths(std::int64_t index) const {
  return lengths_of(source_->size(Split::train, index));
}

void Dataset::sorted_rows(std::int64_t step, std::int64_t batch, std::int64_t shards,
                          std::vector<std::int64_t>& rows, std::vector<std::int64_t>& drawn) const {
  drawn_rows(step, batch, 0, batch, drawn);
  std::ranges::sort(drawn, {}, [&](std::int64_t row) { return std::pair(row_lengths(row).total(), row); });
  if (source_->step_order() != StepOrder::dealt) shards = 1;
  rows.resize(drawn.size());
  const auto begin = [&](std::int64_t shard) { return batch * shard / shards; };
  auto next = drawn.begin();
  for (std::int64_t round = 0; next != drawn.end(); ++round)
    for (std::int64_t shard = 0; shard < shards; ++shard)
      if (const std::int64_t at = begin(shard) + round; at < begin(shard + 1))
        rows[static_cast<std::size_t>(at)] = *next++;
}

std::int64_t Dataset::training_index(std::int64_t step, std::int64_t batch, std::int64_t row) const {
  std::vector<std::int64_t> rows;
  if (!sorts()) {
    drawn_rows(step, batch, row, 1, rows);
    return rows.front();
  }
  std::vector<std::int64_t> drawn;
  sorted_rows(step, batch, 1, rows, drawn);
  return rows[static_cast<std::size_t>(row)];
}

// Returns the keys that `find` appends for each answer, with the positions of the answers.
template <class Key, class Find>
std::vector<Alignment> Dataset::align(const Example& example, const Find& find) const {
  std::vector<Alignment> found;
  if (find == nullptr || layout_ == Layout::sequence) return found;
  const auto first = layout_ == Layout::next ? static_cast<std::int32_t>(example.input.size()) - 1 : 0;
  std::vector<Key> keys;
  for (std::size_t i = 0; i < example.target.size(); ++i) {
    if (example.target[i] == kIgnore) continue;
    keys.clear();
    find(config(), example, i, keys);
    for (const Key& key : keys) {
      const Relevant r{key};
      found.push_back({first + static_cast<std::int32_t>(i), r.key, r.kind});
    }
  }
  return found;
}

std::vector<Alignment> Dataset::alignments(const Example& example) const {
  if (!example.attends.empty()) return example.attends;
  return align<Relevant>(example, task().relevant);
}

std::vector<Alignment> Dataset::candidates(const Example& example) const {
  if (!example.attends.empty()) {
    const ExampleSize size{std::ssize(example.input), std::ssize(example.target)};
    const std::int64_t keys = layout_ == Layout::seq2seq ? size.input : laid_out_length(layout_, size);
    std::vector<Alignment> all;
    for (const Alignment& a : example.attends)
      for (std::int32_t key = 0; key < keys; ++key) all.push_back({a.query, key, a.kind});
    return all;
  }
  return align<std::int32_t>(example, task().candidates);
}

void Dataset::start(Split split, std::int64_t count, std::span<const std::int64_t> fitted, Batch& out) const {
  RowLengths longest{sizes_.length, sizes_.source_length};
  if (!fitted.empty()) longest = {};
  for (const std::int64_t index : fitted) longest = longest.with(lengths_of(source_->size(split, index)));
  const auto [length, source] = longest;
  out.sequences = count;
  out.length = length;
  out.source_length = source;
  out.rows.clear();
  out.row_labels.clear();
  out.countable_labels.clear();
  out.knowable_labels.clear();
  const auto cells = static_cast<std::size_t>(count * length), rows = static_cast<std::size_t>(count);
  out.tokens.assign(cells, 0);
  out.lengths.resize(rows);
  out.sources.assign(static_cast<std::size_t>(count * source), 0);
  out.source_lengths.resize(layout_ == Layout::seq2seq ? rows : 0);
  out.labels.assign(layout_ == Layout::sequence ? rows : cells, kIgnore);
  out.rows.reserve(out.labels.size());
  out.row_labels.reserve(out.labels.size());
  if (unknown_token() != kIgnore) out.countable_labels.reserve(out.labels.size());
}

void Dataset::add_source(std::int64_t row, Batch& out) const {
  const std::vector<std::int32_t>& input = out.example.input;
  require<DataError>(std::ssize(input) <= out.source_length,
                     "task {}: an input of {} tokens, the longest is {}", config().name, input.size(),
                     out.source_length);
  out.source_lengths[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(input.size());
  std::ranges::copy(input, out.sources.begin() + row * out.source_length);
}

void Dataset::lay_out(std::int64_t row, Batch& out) const {
  const Example& example = out.example;
  const std::vector<std::int32_t>&input = example.input, &target = example.target;
  const ExampleSize size{std::ssize(input), std::ssize(target)};
  check_layout(config().name, task(), layout_, size);
  const std::int64_t used = laid_out_length(layout_, size);
  require<DataError>(used <= out.length, "task {}: an example of {} tokens, the longest is {}", config().name,
                     used, out.length);

  const std::int64_t offset = row * out.length;
  out.lengths[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(used);
  const auto tokens = out.tokens.begin() + offset;
  // position  tokens: x1 x2 x3           labels: y1 y2 y3
  // sequence  tokens: x1 x2 x3           labels: y1, one per row
  // next      tokens: x1 x2 x3 y1 y2     labels: -  -  y1 y2 y3
  // seq2seq   tokens: <begin> y1 y2 y3   labels: y1 y2 y3 <end>
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
    first_label += size.input - 1;
  }
  const std::int32_t unknown = output_of(unknown_token());
  std::ranges::transform(target, out.labels.begin() + first_label,
                         [&](std::int32_t token) { return output_of(token); });
  for (std::int64_t i = first_label; i < first_label + labels; ++i) {
    const std::int32_t label = out.labels[static_cast<std::size_t>(i)];
    if (label == kIgnore) continue;
    out.rows.push_back(static_cast<std::int32_t>(i));
    out.row_labels.push_back(label);
    if (unknown != kIgnore) out.countable_labels.push_back(label == unknown ? kIgnore : label);
    if (task().knowable == nullptr || task().sparse) continue;
    const bool is_known = task().knowable(config(), input, static_cast<std::size_t>(i - first_label));
    out.knowable_labels.push_back(is_known ? label : kIgnore);
  }
}

void Dataset::fill(Split split, std::int64_t first, std::int64_t count, Batch& out, bool fits) const {
  const bool endless = split == Split::train && data_.train == 0;
  require<ShapeError>(
      first >= 0 && count >= 0 && (endless || (first <= size(split) && count <= size(split) - first)),
      "dataset: {} {} examples from {}, out of {}", count, split_name(split), first, size(split));
  out.step_rows.resize(static_cast<std::size_t>(count));
  std::iota(out.step_rows.begin(), out.step_rows.end(), first);
  fill(split, out.step_rows, out, fits);
}

void Dataset::fill(Split split, std::span<const std::int64_t> indices, Batch& out, bool fits) const {
  start(split, std::ssize(indices), fits ? indices : std::span<const std::int64_t>(), out);
  for (std::int64_t row = 0; row < out.sequences; ++row) {
    example(split, indices[static_cast<std::size_t>(row)], out.example);
    lay_out(row, out);
  }
}

void Dataset::fill(std::span<const Example> examples, Batch& out) const {
  start(Split::train, std::ssize(examples), {}, out);
  for (std::int64_t row = 0; row < out.sequences; ++row) {
    out.example = examples[static_cast<std::size_t>(row)];
    lay_out(row, out);
  }
}

void Dataset::fill_step(std::int64_t step, std::int64_t batch, std::int64_t first, std::int64_t count,
                        Batch& out) const {
  require<ShapeError>(step >= 0 && first >= 0 && count >= 0 && first <= batch && count <= batch - first,
                      "dataset: step {}: {} rows from {}, in a batch of {}", step, count, first, batch);
  std::vector<std::int64_t>& rows = out.step_rows;
  if (sorts()) {
    std::vector<std::int64_t> drawn;
    sorted_rows(step, batch, 1, rows, drawn);
    const auto part =
        std::span(rows).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    return fill(Split::train, part, out, true);
  }
  drawn_rows(step, batch, first, count, rows);
  if (source_->starts() == 0) return fill(Split::train, rows, out);
  start(Split::train, count, {}, out);
  for (std::int64_t i = 0; i < count; ++i) {
    source_->example_from(rows[static_cast<std::size_t>(i)], out.example);
    lay_out(i, out);
  }
}

}  // namespace thimble
