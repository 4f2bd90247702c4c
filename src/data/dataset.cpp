#include "thimble/data/dataset.h"

#include <algorithm>
#include <limits>
#include <set>

#include "thimble/core/error.h"
#include "thimble/data/table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace thimble {
namespace {

constexpr double kFewestInputs = 200;  // below this, splits would be too small to mean anything
constexpr std::uint32_t kMaxAttempts =
    10000;  // a tenth of the inputs suits, so 100 failures in a row are luck

// Throws unless targets of that size can be laid out that way.
void check_layout(const std::string& name, const Task& task, Layout layout, ExampleSize size) {
  switch (layout) {
    case Layout::position:
      return require<DataError>(size.input == size.target,
                                "task {}: {} targets for {} tokens: one output per position needs one each",
                                name, size.target, size.input);
    case Layout::sequence:
      return require<DataError>(size.target == 1,
                                "task {}: {} targets: one output per sequence needs exactly one", name,
                                size.target);
    case Layout::next:
      require<DataError>(!task.sparse,
                         "task {}: some positions have no answer to go on from; it needs one "
                         "output per position",
                         name);
      return require<DataError>(size.input >= 1 && size.target >= 1,
                                "task {}: next-token output needs an input and a target", name);
  }
}

std::int64_t laid_out_length(Layout layout, ExampleSize size) {
  return size.input + (layout == Layout::next ? size.target - 1 : 0);
}

// Sizes that the task can fill.
DataConfig available(const Task& task, const TaskConfig& config, DataConfig data) {
  require<DataError>(data.train >= 0 && data.validation >= 0 && data.test >= 0,
                     "data: {} train, {} validation, {} test sequences: none may be negative", data.train,
                     data.validation, data.test);
  if (task.at == nullptr) return data;
  if (task.table != nullptr) {
    require<DataError>(data.train >= 1,
                       "task {}: data.train must be at least 1: a file has no fresh sequences", config.name);
    const auto& rows = task.table(config).splits();
    return {std::min(data.train, rows[0]), std::min(data.validation, rows[1]), std::min(data.test, rows[2])};
  }
  const auto inputs = static_cast<std::int64_t>(task.distinct_inputs(config));
  require<DataError>(data.train >= 1 && data.train < inputs,
                     "task {}: there are {} inputs in all, so data.train must be 1 to {}, not {}",
                     config.name, inputs, inputs - 1, data.train);
  const std::int64_t rest = inputs - data.train;
  data.validation = std::min(data.validation, rest / 2);
  data.test = std::min(data.test, rest - data.validation);
  return data;
}

}  // namespace

Split home_split(std::span<const std::int32_t> input) {
  constexpr std::uint64_t kTenth = std::numeric_limits<std::uint64_t>::max() / 10;
  const std::uint64_t hash = XXH3_64bits(input.data(), input.size_bytes());
  return hash < kTenth ? Split::validation : hash < 2 * kTenth ? Split::test : Split::train;
}

std::string_view split_name(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::validation:
      return "validation";
    case Split::test:
      break;
  }
  return "test";
}

Layout usual_layout(ExampleSize size) {
  if (size.target == 1) return Layout::sequence;
  return size.target == size.input ? Layout::position : Layout::next;
}

std::int64_t model_length(const TaskConfig& config, Layout layout) {
  const Task& task = checked_task(config);
  const ExampleSize size = task.size(config);
  if (task.table != nullptr) task.table(config).check(layout);
  check_layout(config.name, task, layout, size);
  return laid_out_length(layout, size);
}

std::int64_t vocabulary_size(const TaskConfig& config) {
  return std::ssize(checked_task(config).tokens(config));
}

Dataset::Dataset(const TaskConfig& task, const DataConfig& data, Layout layout, std::uint64_t seed)
    : task_(task),
      source_(&checked_task(task)),
      data_(available(*source_, task, data)),
      layout_(layout),
      length_(model_length(task, layout)),
      vocabulary_(vocabulary_size(task)),
      disjoint_(source_->table != nullptr
                    ? source_->table(task).disjoint()
                    : source_->at != nullptr || source_->distinct_inputs(task) >= kFewestInputs),
      draws_(seed, Stream::data),
      order_(seed, Stream::order) {
  const bool is_table = source_->table != nullptr;
  const std::int64_t train = is_table ? source_->table(task).splits()[0] : data_.train;
  starts_ = {0, train, train + (is_table ? source_->table(task).splits()[1] : data_.validation)};
  if (source_->at != nullptr && !is_table)
    inputs_.emplace(static_cast<std::uint64_t>(source_->distinct_inputs(task)), Random(seed, Stream::split),
                    0);
}

std::int64_t Dataset::size(Split split) const {
  return split == Split::train ? data_.train : split == Split::validation ? data_.validation : data_.test;
}

void Dataset::draw(Split split, std::int64_t index, Example& out) const {
  if (source_->at != nullptr) {
    const std::int64_t position = starts_[static_cast<std::size_t>(split)] + index;
    const auto input =
        inputs_ ? static_cast<std::int64_t>((*inputs_)(static_cast<std::uint64_t>(position))) : position;
    return source_->at(task_, input, out);
  }
  for (std::uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const std::uint32_t lane = attempt << 2 | static_cast<std::uint32_t>(split);
    Draws draws(draws_, static_cast<std::uint64_t>(index), lane);
    source_->sample(task_, draws, out);
    if (!disjoint_ || home_split(out.input) == split) return;
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

void Dataset::start(std::int64_t count, Batch& out) const {
  out.sequences = count;
  out.length = length_;
  out.rows.clear();
  out.row_labels.clear();
  const auto cells = static_cast<std::size_t>(count * length_), rows = static_cast<std::size_t>(count);
  out.tokens.assign(cells, 0);
  out.lengths.resize(rows);
  out.labels.assign(layout_ == Layout::sequence ? rows : cells, kIgnore);
  out.rows.reserve(out.labels.size());
  out.row_labels.reserve(out.labels.size());
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
  const auto tokens = std::copy(input.begin(), input.end(), out.tokens.begin() + offset);
  std::int64_t first_label = layout_ == Layout::sequence ? row : offset;
  if (layout_ == Layout::next) {
    std::copy(target.begin(), target.end() - 1, tokens);
    first_label += size.input - 1;  // the last input token is where the first target is predicted
  }
  std::ranges::copy(target, out.labels.begin() + first_label);
  for (std::int64_t i = 0; i < size.target; ++i) {
    const std::int32_t label = target[static_cast<std::size_t>(i)];
    if (label == kIgnore) continue;
    out.rows.push_back(static_cast<std::int32_t>(first_label + i));
    out.row_labels.push_back(label);
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

Permutation Dataset::epoch_order(std::int64_t step, std::int64_t batch) const {
  require<DataError>(batch >= 1 && batch <= data_.train,
                     "dataset: a batch of {} out of {} training sequences; use a smaller batch", batch,
                     data_.train);
  const std::int64_t steps_per_epoch = data_.train / batch;
  return {static_cast<std::uint64_t>(data_.train), order_,
          static_cast<std::uint64_t>(step / steps_per_epoch)};
}

std::int64_t Dataset::training_index(std::int64_t step, std::int64_t batch, std::int64_t row) const {
  if (data_.train == 0) return step * batch + row;
  const Permutation order = epoch_order(step, batch);
  return static_cast<std::int64_t>(
      order(static_cast<std::uint64_t>(step % (data_.train / batch) * batch + row)));
}

std::vector<Dataset::Link> Dataset::links(const Example& example) const {
  std::vector<Link> found;
  if (source_->relevant == nullptr || layout_ == Layout::sequence) return found;
  const auto first = layout_ == Layout::next ? static_cast<std::int32_t>(example.input.size()) - 1 : 0;
  std::vector<std::int32_t> keys;
  for (std::size_t i = 0; i < example.target.size(); ++i) {
    if (example.target[i] == kIgnore) continue;
    keys.clear();
    source_->relevant(task_, example, i, keys);
    for (const std::int32_t key : keys) found.push_back({first + static_cast<std::int32_t>(i), key});
  }
  return found;
}

std::int64_t Dataset::shared_with_training(Split split) const {
  if (disjoint_) return 0;
  if (data_.train == 0) return size(split);  // in the end training draws every input
  std::set<std::vector<std::int32_t>> seen;
  Example e;
  for (std::int64_t i = 0; i < data_.train; ++i) {
    draw(Split::train, i, e);
    seen.insert(e.input);
    if (static_cast<double>(seen.size()) == source_->distinct_inputs(task_)) break;
  }
  std::int64_t shared = 0;
  for (std::int64_t i = 0; i < size(split); ++i) {
    draw(split, i, e);
    shared += seen.contains(e.input) ? 1 : 0;
  }
  return shared;
}

}  // namespace thimble
