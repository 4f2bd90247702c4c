#include "thimble/train/dataset.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "thimble/engine/error.h"
#include "train/data/layout.h"
#include "train/data/rows.h"
#include "train/files/hash.h"
#include "train/files/progress.h"

namespace thimble {
namespace {

constexpr double kMinInputs = 200;             // with fewer, splits by hash would be too small
constexpr std::int64_t kVaried = 1 << 20;      // examples
constexpr std::uint32_t kMaxAttempts = 10000;  // a tenth of the inputs or more is in each split

}  // namespace

DataConfig split_sizes(const TaskConfig& config, DataConfig data) {
  const Task& task = find_task(config.name);
  require<DataError>(data.train >= 0 && data.validation >= 0 && data.test >= 0,
                     "data: {} train, {} validation, {} test sequences: must not be negative", data.train,
                     data.validation, data.test);
  if (task.at == nullptr) return data;
  if (task.open != nullptr) {
    require<DataError>(data.train >= 1,
                       "task {}: data.train is 0, and a file has no unlimited sequences; set data.train=all",
                       config.name);
    const auto& rows = rows_of(config).splits();
    return {std::min(data.train, rows[0]), std::min(data.validation, rows[1]), std::min(data.test, rows[2])};
  }
  const auto inputs = static_cast<std::int64_t>(task.distinct_inputs(config));
  require<DataError>(data.train >= 1 && data.train < inputs,
                     "task {}: has {} inputs, so data.train must be from 1 to {}, not {}", config.name,
                     inputs, inputs - 1, data.train);
  const std::int64_t rest = inputs - data.train;
  data.validation = std::min(data.validation, rest / 2);
  data.test = std::min(data.test, rest - data.validation);
  return data;
}

Split split_by_hash(std::span<const std::int32_t> input) {
  return split_of_hash(hash_of({reinterpret_cast<const char*>(input.data()), input.size_bytes()}));
}

Split split_of_hash(std::uint64_t hash) {
  constexpr std::uint64_t kTenth = std::numeric_limits<std::uint64_t>::max() / 10;
  return hash < kTenth ? Split::validation : hash < 2 * kTenth ? Split::test : Split::train;
}

std::string_view split_name(Split split) {
  constexpr std::string_view kNames[] = {"train", "validation", "test", "varied"};
  return kNames[static_cast<std::size_t>(split)];
}

Dataset::Dataset(const TaskConfig& task, const DataConfig& data, Layout layout, std::uint64_t seed)
    : task_(task),
      source_(&checked_task(task)),
      data_(split_sizes(task, data)),
      layout_(layout),
      sizes_(model_sizes(task, layout)),
      names_(token_names(task, layout)),
      unknown_(source_->open != nullptr ? rows_of(task).unknown() : kIgnore),
      places_(source_->open != nullptr ? rows_of(task).places() : 0),
      sorts_(places_ == 0 && source_->open != nullptr && layout != Layout::seq2seq &&
             rows_of(task).rows() > 0 && rows_of(task).length_of(0) > 0),
      disjoint_(source_->open != nullptr
                    ? rows_of(task).disjoint()
                    : source_->at != nullptr || source_->distinct_inputs(task) >= kMinInputs),
      draws_(seed, Stream::data),
      order_(seed, Stream::order) {
  const bool is_table = source_->open != nullptr;
  const std::int64_t train = is_table ? rows_of(task).splits()[0] : data_.train;
  starts_ = {0, train, train + (is_table ? rows_of(task).splits()[1] : data_.validation)};
  if (source_->at != nullptr && !is_table)
    inputs_.emplace(static_cast<std::uint64_t>(source_->distinct_inputs(task)), Random(seed, Stream::split),
                    0);
}

std::int64_t Dataset::size(Split split) const {
  if (split == Split::varied) return source_->vary == nullptr ? 0 : kVaried;
  return data_.size(split);
}

void Dataset::require_rows(Split split) const {
  if (split == Split::varied) return;
  if (source_->open != nullptr) return rows_of(task_).require_rows(split);
  require<DataError>(
      source_->at == nullptr || size(split) > 0,
      "task {}: data.train has {} of the {} inputs, so the {} split is empty; lower data.train", task_.name,
      data_.train, source_->distinct_inputs(task_), split_name(split));
}

std::int64_t Dataset::listed(Split split, std::int64_t index) const {
  const std::int64_t position = starts_[static_cast<std::size_t>(split)] + index;
  return inputs_ ? static_cast<std::int64_t>((*inputs_)(static_cast<std::uint64_t>(position))) : position;
}

void Dataset::draw(Split split, std::int64_t index, Example& out) const {
  if (split == Split::varied) {
    SampleRng rng(draws_, static_cast<std::uint64_t>(index), static_cast<std::uint32_t>(split));
    return source_->vary(task_, rng, out);
  }
  require_rows(split);
  if (source_->at != nullptr) return source_->at(task_, listed(split, index), out);
  for (std::uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const std::uint32_t lane = attempt << 2 | static_cast<std::uint32_t>(split);
    SampleRng rng(draws_, static_cast<std::uint64_t>(index), lane);
    source_->sample(task_, rng, out);
    if (!disjoint_ || split_by_hash(out.input) == split) return;
  }
  throw DataError(fmt::format("task {}: no {} example in {} attempts; allow more symbols or longer sequences",
                              task_.name, split_name(split), kMaxAttempts));
}

void Dataset::example(Split split, std::int64_t index, Example& out) const {
  const bool endless = split == Split::train && data_.train == 0;
  require<ShapeError>(index >= 0 && (endless || index < size(split)), "dataset: {} example {} of {}",
                      split_name(split), index, size(split));
  draw(split, index, out);
}

std::string Dataset::where(Split split, std::int64_t index) const {
  if (source_->open == nullptr || split == Split::varied) return "";
  return rows_of(task_).where(listed(split, index));
}

Permutation Dataset::epoch_order(std::int64_t step, std::int64_t batch) const {
  require<DataError>(
      batch >= 1 && batch <= data_.train,
      "dataset: a batch of {} needs as many training sequences, there are {}; lower train.batch", batch,
      data_.train);
  const std::int64_t steps_per_epoch = data_.train / batch;
  return {static_cast<std::uint64_t>(data_.train), order_,
          static_cast<std::uint64_t>(step / steps_per_epoch)};
}

void Dataset::step_rows(std::int64_t step, std::int64_t batch, std::int64_t first, std::int64_t count,
                        std::vector<std::int64_t>& rows) const {
  const std::int64_t begin = sorts_ ? 0 : first;
  rows.resize(static_cast<std::size_t>(sorts_ ? batch : count));
  if (places_ > 0) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = SampleRng(order_, static_cast<std::uint64_t>(step * batch + begin) + i, 0).below(places_);
  } else if (data_.train == 0) {
    std::iota(rows.begin(), rows.end(), step * batch + begin);
  } else {
    const Permutation order = epoch_order(step, batch);
    const auto start = static_cast<std::uint64_t>(step % (data_.train / batch) * batch + begin);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(order(start + i));
  }
  if (!sorts_) return;
  std::ranges::sort(rows, {},
                    [&](std::int64_t row) { return std::pair(rows_of(task_).length_of(row), row); });
  rows.erase(rows.begin() + first + count, rows.end());
  rows.erase(rows.begin(), rows.begin() + first);
}

std::int64_t Dataset::training_index(std::int64_t step, std::int64_t batch, std::int64_t row) const {
  std::vector<std::int64_t> rows;
  step_rows(step, batch, row, 1, rows);
  return rows.front();
}

// Returns the keys that `find` appends for each answer, with the positions of the answers.
template <class Key, class Find>
std::vector<Dataset::Alignment> Dataset::align(const Example& example, const Find& find) const {
  std::vector<Alignment> found;
  if (find == nullptr || layout_ == Layout::sequence) return found;
  const auto first = layout_ == Layout::next ? static_cast<std::int32_t>(example.input.size()) - 1 : 0;
  std::vector<Key> keys;
  for (std::size_t i = 0; i < example.target.size(); ++i) {
    if (example.target[i] == kIgnore) continue;
    keys.clear();
    find(task_, example, i, keys);
    for (const Key& key : keys) {
      const Relevant r{key};
      found.push_back({first + static_cast<std::int32_t>(i), r.key, r.kind});
    }
  }
  return found;
}

std::vector<Dataset::Alignment> Dataset::alignments(const Example& example) const {
  return align<Relevant>(example, source_->relevant);
}

std::vector<Dataset::Alignment> Dataset::candidates(const Example& example) const {
  return align<std::int32_t>(example, source_->candidates);
}

std::int64_t Dataset::shared_with_training(Split split) const {
  if (disjoint_) return 0;
  if (data_.train == 0) return size(split);  // unlimited training draws every input sooner or later
  ProgressCounter progress("comparing the splits", static_cast<double>(data_.train + size(split)));
  std::vector<std::uint64_t> seen;  // hashes of inputs
  std::size_t limit = 1024;
  const auto merge = [&] {
    std::ranges::sort(seen);
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    limit = std::max(limit, 2 * seen.size());
  };
  Example e;
  const auto hash = [&] {
    return hash_of({reinterpret_cast<const char*>(e.input.data()), e.input.size() * sizeof(std::int32_t)});
  };
  for (std::int64_t i = 0; i < data_.train; ++i) {
    draw(Split::train, i, e);
    seen.push_back(hash());
    progress.advance();
    if (seen.size() < limit) continue;
    merge();
    if (static_cast<double>(seen.size()) == source_->distinct_inputs(task_)) break;
  }
  merge();
  std::int64_t shared = 0;
  for (std::int64_t i = 0; i < size(split); ++i) {
    draw(split, i, e);
    shared += std::ranges::binary_search(seen, hash()) ? 1 : 0;
    progress.advance();
  }
  return shared;
}

void Dataset::start(std::int64_t count, std::int64_t length, Batch& out) const {
  out.sequences = count;
  out.length = length;
  out.source_length = source_length();
  out.rows.clear();
  out.row_labels.clear();
  out.countable_labels.clear();
  const auto cells = static_cast<std::size_t>(count * length), rows = static_cast<std::size_t>(count);
  out.tokens.assign(cells, 0);
  out.lengths.resize(rows);
  out.sources.assign(static_cast<std::size_t>(count * source_length()), 0);
  out.source_lengths.resize(layout_ == Layout::seq2seq ? rows : 0);
  out.labels.assign(layout_ == Layout::sequence ? rows : cells, kIgnore);
  out.rows.reserve(out.labels.size());
  out.row_labels.reserve(out.labels.size());
  if (unknown_ != kIgnore) out.countable_labels.reserve(out.labels.size());
}

void Dataset::add_source(std::int64_t row, Batch& out) const {
  const std::vector<std::int32_t>& input = out.example.input;
  require<DataError>(std::ssize(input) <= source_length(),
                     "task {}: an input of {} tokens, the longest is {}", task_.name, input.size(),
                     source_length());
  out.source_lengths[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(input.size());
  std::ranges::copy(input, out.sources.begin() + row * source_length());
}

void Dataset::add_row(Split split, std::int64_t index, std::int64_t row, Batch& out) const {
  draw(split, index, out.example);
  lay_out(row, out);
}

void Dataset::lay_out(std::int64_t row, Batch& out) const {
  const Example& example = out.example;
  const std::vector<std::int32_t>&input = example.input, &target = example.target;
  const ExampleSize size{std::ssize(input), std::ssize(target)};
  check_layout(task_.name, *source_, layout_, size);
  const std::int64_t used = laid_out_length(layout_, size);
  require<DataError>(used <= out.length, "task {}: an example of {} tokens, the longest is {}", task_.name,
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
  start(count, length(), out);
  for (std::int64_t row = 0; row < count; ++row) add_row(split, first + row, row, out);
}

void Dataset::fill(Split split, std::span<const std::int64_t> indices, Batch& out) const {
  start(std::ssize(indices), length(), out);
  for (std::int64_t row = 0; row < out.sequences; ++row) {
    example(split, indices[static_cast<std::size_t>(row)], out.example);
    lay_out(row, out);
  }
}

void Dataset::fill_step(std::int64_t step, std::int64_t batch, std::int64_t first, std::int64_t count,
                        Batch& out) const {
  require<ShapeError>(step >= 0 && first >= 0 && count >= 0 && first <= batch && count <= batch - first,
                      "dataset: step {}: {} rows from {}, in a batch of {}", step, count, first, batch);
  std::vector<std::int64_t>& rows = out.step_rows;
  step_rows(step, batch, first, count, rows);
  std::int64_t length = sorts_ ? 0 : sizes_.length;
  for (const std::int64_t row : rows)
    if (sorts_) length = std::max(length, rows_of(task_).length_of(row));
  start(count, length, out);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = rows[static_cast<std::size_t>(i)];
    if (places_ > 0)
      rows_of(task_).example_at(row, out.example);
    else
      draw(Split::train, row, out.example);
    lay_out(i, out);
  }
}

}  // namespace thimble
